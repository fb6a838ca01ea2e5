//! The user's own files: those who keep them in a folder of their own (dotfiles) have links where programs look.
use std::path::{Path, PathBuf};

use super::read_bounded;
use crate::env::Env;
use crate::issue::{Issue, IssueKind};

/// Returns where a file of the user's own really lies: links in its folders and in its own place are followed, as far as
/// something is there. A link to nothing is an [`Issue`], and so is one that stands inside a repository: that one came with
/// it, unless the repository is the home itself.
pub fn own(env: &Env, path: &Path) -> Result<PathBuf, Issue> {
    let home = env.home();
    let is_brought = |link: &Path| {
        link.ancestors()
            .skip(1)
            .take_while(|folder| !home.as_ref().is_some_and(|home| home.starts_with(folder)))
            .any(|folder| std::fs::symlink_metadata(folder.join(".git")).is_ok())
    };
    let is_link = |part: &&Path| part.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if let Some(link) = path
        .ancestors()
        .filter(is_link)
        .find(|link| is_brought(link))
    {
        let why = "a link stands here, inside a repository; it is not followed";
        return Err(Issue::new(link, IssueKind::Symlink, why));
    }
    for part in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(part) {
            // Nothing is joined to a file itself: that would make a folder of it.
            return Ok(match path.strip_prefix(part) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                Ok(_) | Err(_) => real,
            });
        }
        if is_link(&part) {
            let why = "a link to nothing stands here; make what it names, or remove it";
            return Err(Issue::new(part, IssueKind::Symlink, why));
        }
    }
    Ok(path.to_path_buf())
}

/// As [`read_bounded`], of a file of the user's own; see [`own`].
pub fn read_own(env: &Env, path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Issue> {
    read_bounded(&own(env, path)?, limit)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::files::write_atomic;

    #[test]
    fn the_user_s_own_links_are_followed_and_those_of_a_repository_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let env = Env::of([("HOME", &home)], "/");
        for made in ["dot/app", "repo/.git"] {
            std::fs::create_dir_all(home.join(made)).unwrap();
        }
        symlink(home.join("dot/app"), home.join(".app")).unwrap();
        // Not there yet, in a folder behind a link: the name it has before is the one it has after.
        let file = home.join(".app/deep/file");
        let real = home.join("dot/app/deep/file");
        assert_eq!(own(&env, &file).unwrap(), real);
        std::fs::create_dir_all(home.join("dot/app/deep")).unwrap();
        write_atomic(&real, b"mine", 0o600).unwrap();
        assert_eq!(own(&env, &file).unwrap(), real);
        let link = home.join("link");
        symlink(&real, &link).unwrap();
        assert_eq!(read_own(&env, &link, 4).unwrap().unwrap(), b"mine");
        // As much is read as of any other file, and nothing but a file.
        assert_eq!(
            read_own(&env, &link, 3).unwrap_err().kind,
            IssueKind::TooLarge
        );
        symlink("/dev/zero", home.join("endless")).unwrap();
        let endless = read_own(&env, &home.join("endless"), 4).unwrap_err();
        assert_eq!(endless.kind, IssueKind::NotAFile);
        for to in ["gone", "circle"] {
            symlink(home.join(to), home.join("circle")).unwrap();
            let dangling = own(&env, &home.join("circle/file")).unwrap_err();
            assert!(dangling.message.contains("link to nothing"), "{dangling:?}");
            std::fs::remove_file(home.join("circle")).unwrap();
        }
        symlink(&real, home.join("repo/link")).unwrap();
        let brought = own(&env, &home.join("repo/link")).unwrap_err();
        assert_eq!(brought.path, home.join("repo/link"));
        // A home that is a repository is the user's own all the same.
        std::fs::create_dir_all(home.join(".git")).unwrap();
        assert_eq!(own(&env, &link).unwrap(), real);
    }
}
