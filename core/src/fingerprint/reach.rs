//! How far a list of paths tells of those that it does not hold.
use super::record::{DeviationKind, TreeRecord};
use crate::paths::bytes_of_text;

/// How far a sorted list tells of the paths that it does not hold: a list that was cut says nothing of what comes after its
/// last path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    end: End,
    /// Repositories inside, as [`super::Deviation::path`]: what lies in them is listed after everything else.
    inner: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// It holds all there is, but for what lies in repositories inside.
    Open,
    /// It was cut after this path.
    At(String),
    /// Nothing is known of any other path.
    Nowhere,
}

impl Reach {
    /// A list that holds all there is.
    pub const WHOLE: Self = Self::to(End::Open);
    /// A list that could not be made.
    pub const NOTHING: Self = Self::to(End::Nowhere);

    const fn to(end: End) -> Self {
        Self {
            end,
            inner: Vec::new(),
        }
    }

    /// The reach of a list, sorted by the bytes of its paths, that ends with `last` because it was cut there.
    pub fn until(last: Option<&str>) -> Self {
        last.map_or(Self::NOTHING, |last| Self::to(End::At(last.to_owned())))
    }

    /// The reach of a record's deviations.
    pub fn of(record: &TreeRecord) -> Self {
        if record.deviations_left_out == 0 {
            return Self::WHOLE;
        }
        let (mut last, mut end) = (None, None);
        let mut inner: Vec<String> = record
            .submodules
            .iter()
            .map(|one| one.path.clone())
            .collect();
        for found in &record.deviations {
            let is_gitlink = found.mode.as_deref() == Some("160000");
            if is_gitlink {
                inner.push(found.path.clone());
            } else if found.kind == DeviationKind::Nested {
                end = Some(End::Open);
            } else if let Some(path) =
                bytes_of_text(&found.path).filter(|path| last.as_ref() < Some(path))
            {
                last = Some(path);
                end = end
                    .filter(|end| *end == End::Open)
                    .or_else(|| Some(End::At(found.path.clone())));
            }
        }
        Self {
            end: end.unwrap_or(End::Nowhere),
            inner,
        }
    }

    /// Tells whether it is known of a path that the list does not hold that there was nothing to say of it.
    pub fn covers(&self, path: &str) -> bool {
        let is_inside = |inner: &String| {
            path.strip_prefix(inner.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_before = match &self.end {
            End::Open => true,
            End::Nowhere => false,
            End::At(end) => match (bytes_of_text(path), bytes_of_text(end)) {
                (Some(path), Some(end)) => path < end,
                _ => false,
            },
        };
        is_before && !self.inner.iter().any(is_inside)
    }

    /// Returns the last path that is told of, where the list was cut.
    pub fn end(&self) -> Option<&str> {
        match &self.end {
            End::At(end) => Some(end),
            End::Open | End::Nowhere => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_list_tells_of_what_comes_before_its_end() {
        let reach = Reach::until(Some("b\\\\x"));
        for (path, known) in [
            ("a", true),
            ("b", true),
            // As bytes: a letter comes after the backslash's byte, a capital before it.
            ("bX", true),
            ("b\\\\x", false),
            ("b\\\\y", false),
            ("bx", false),
            ("c", false),
            ("caf\\xe9", false),
            ("a\\q", false),
        ] {
            assert_eq!(reach.covers(path), known, "{path}");
        }
        assert!(Reach::WHOLE.covers("z") && !Reach::NOTHING.covers("a"));
        assert_eq!(Reach::until(None), Reach::NOTHING);
        let within = Reach {
            inner: vec!["a/sub".to_owned()],
            ..Reach::until(Some("b"))
        };
        for (path, known) in [("a/sub", false), ("a/sub/x", false), ("a/subs", true)] {
            assert_eq!(within.covers(path), known, "{path}");
        }
    }
}
