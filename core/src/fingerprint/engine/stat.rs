//! Metadata of files, and when it may be trusted.
use rustix::fs::Stat;

/// A moment as the file system tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

impl Stamp {
    /// Returns the moment so many milliseconds earlier.
    pub(super) fn earlier(self, millis: u32) -> Self {
        let total = i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanos)
            - i128::from(millis) * 1_000_000;
        Self {
            seconds: i64::try_from(total.div_euclid(1_000_000_000)).unwrap_or(i64::MIN),
            nanos: u32::try_from(total.rem_euclid(1_000_000_000)).unwrap_or(0),
        }
    }
}

/// The part of a file's metadata that tells whether its content may have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meta {
    pub(super) dev: u64,
    pub(super) ino: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mtime: Stamp,
    pub(super) ctime: Stamp,
}

/// Kinds of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
    Dir,
    Other,
}

impl Meta {
    #[expect(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the fields have other types on other machines; nanoseconds and sizes fit"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            size: stat.st_size as u64,
            mode: stat.st_mode as u32,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
            mtime: Stamp {
                seconds: stat.st_mtime.into(),
                nanos: stat.st_mtime_nsec as u32,
            },
            ctime: Stamp {
                seconds: stat.st_ctime.into(),
                nanos: stat.st_ctime_nsec as u32,
            },
        }
    }

    pub(super) const fn kind(&self) -> Kind {
        match self.mode & 0o170_000 {
            0o100_000 => Kind::File,
            0o120_000 => Kind::Link,
            0o040_000 => Kind::Dir,
            _ => Kind::Other,
        }
    }

    /// Tells whether the file or folder was at rest before a look began, so that a change after it was read moves a
    /// timestamp. Without nanoseconds a whole clock step of the coarsest file systems has to lie between.
    pub(super) fn settled(&self, begin: Stamp) -> bool {
        let coarse = self.mtime.nanos == 0 && self.ctime.nanos == 0;
        let limit = begin.earlier(if coarse { 2_500 } else { 50 });
        self.mtime < limit && self.ctime < limit
    }
}

/// How far the metadata that git keeps in its index may be trusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    /// A file whose timestamps are not older than this is looked at.
    limit: Stamp,
    /// As `limit`, for files on another file system than the root of the work tree.
    foreign: Stamp,
    dev: u64,
    nothing: bool,
}

impl Trust {
    /// `index` is the index file's own modification time, `dev` the device of the work tree. `fine` tells that the file
    /// system gives every change after a look a timestamp of its own (Linux 6.13 and later); else what was changed up to
    /// 2.5 seconds before the index was written is looked at.
    pub(super) fn new(index: Stamp, dev: u64, fine: bool, nothing: bool) -> Self {
        let foreign = index.earlier(2_500);
        Self {
            limit: if fine { index } else { foreign },
            foreign,
            dev,
            nothing,
        }
    }

    /// Compares with the ten 32-bit numbers of an entry (`gitformat-index`): ctime, mtime, device, inode, mode, user,
    /// group, size. The device is left out, as git does. A size of 0 for content that is not empty is git's mark for an
    /// entry it does not trust itself; `empty` tells whether the entry's id is that of the empty content.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the index keeps the low 32 bits"
    )]
    #[expect(clippy::cast_sign_loss, reason = "the index keeps the low 32 bits")]
    pub(super) fn holds(
        &self,
        meta: &Meta,
        block: &[u8; 40],
        empty: impl FnOnce() -> bool,
    ) -> bool {
        let word = |at: usize| {
            block
                .get(at..at + 4)
                .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
                .map_or(0, u32::from_be_bytes)
        };
        let size = word(36);
        if word(8) != meta.mtime.seconds as u32
            || word(12) != meta.mtime.nanos
            || word(0) != meta.ctime.seconds as u32
            || word(4) != meta.ctime.nanos
            || word(20) != meta.ino as u32
            || word(20) == 0
            || word(28) != meta.uid
            || word(32) != meta.gid
            || size != meta.size as u32
            || self.nothing
        {
            return false;
        }
        let limit = if meta.dev == self.dev {
            self.limit
        } else {
            self.foreign
        };
        meta.mtime < limit && meta.ctime < limit && (size != 0 || empty())
    }
}

/// Tells whether folders on a file system with this magic number (`statfs(2)`) change their timestamps with their names,
/// as local file systems do.
pub(super) const fn local(magic: u64) -> bool {
    matches!(
        magic,
        0xEF53 | 0x5846_5342 | 0x9123_683E | 0x0102_1994 | 0xF2F5_2010 | 0xCA45_1A4E | 0x2FC1_2FC1
    )
}

/// Tells whether a file system with this magic number has timestamps of many grains from Linux 6.13 on (ext4, XFS, btrfs,
/// tmpfs): once a timestamp was read, the next change gets another one.
pub(super) const fn many_grains(magic: u64) -> bool {
    matches!(magic, 0xEF53 | 0x5846_5342 | 0x9123_683E | 0x0102_1994)
}

/// Tells whether a kernel release, such as `6.18.2-generic`, is 6.13 or later.
pub(super) fn since_6_13(release: &str) -> bool {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let major = numbers.next().unwrap_or(0);
    let minor = numbers.next().unwrap_or(0);
    (major, minor) >= (6, 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels() {
        assert!(since_6_13("6.13.0"));
        assert!(since_6_13("7.0-rc1"));
        assert!(!since_6_13("6.12.99-generic"));
        assert!(!since_6_13("5.15"));
        assert!(!since_6_13(""));
    }

    #[test]
    fn what_is_not_at_rest_is_not_settled() {
        let begin = Stamp {
            seconds: 100,
            nanos: 10_000_000,
        };
        let at = |seconds, nanos| Meta {
            mtime: Stamp { seconds, nanos },
            ctime: Stamp {
                seconds: 1,
                nanos: 1,
            },
            ..Meta::default()
        };
        assert!(at(99, 950_000_000).settled(begin));
        assert!(!at(99, 970_000_000).settled(begin));
        assert!(!at(101, 1).settled(begin));
        let coarse = Meta {
            mtime: Stamp {
                seconds: 98,
                nanos: 0,
            },
            ..Meta::default()
        };
        assert!(!coarse.settled(begin));
    }
}
