//! Which names say that their value is secret, and which values say that they are none.

/// Ends of names, in lower case and without separators.
const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "authkey",
    "accountkey",
    "sharedkey",
    "storagekey",
    "servicekey",
    "deploykey",
    "adminkey",
    "clientkey",
    "appkey",
    "licensekey",
    "secretkeybase",
    "credential",
    "credentials",
    "connectionstring",
    "sharedaccesssignature",
    "xamzsignature",
    "xgoogsignature",
];

/// Ends that say secret only behind another word: `PWD` is a folder, and a `pass` may be one of a compiler.
const BEHIND_A_WORD: &[&str] = &["pwd", "pass", "pat"];

/// How much of a value is looked at to tell what it is, so that a text of many long ones takes no time.
const LOOKED_AT: usize = 256;

/// Tells whether a name (of a variable, a field, a flag) says that its value is secret.
///
/// ```
/// use takeup_core::redact::is_secret_name;
/// assert!(is_secret_name("GITHUB_TOKEN") && is_secret_name("--api-key") && is_secret_name("dbPassword"));
/// assert!(!is_secret_name("max_tokens") && !is_secret_name("tokenizer") && !is_secret_name("PWD"));
/// ```
pub fn is_secret_name(name: &str) -> bool {
    let plain = plain(name);
    ENDINGS.iter().any(|ending| plain.ends_with(ending))
        || plain == "auth" && name.trim_start_matches('-').starts_with('_')
        || BEHIND_A_WORD.iter().any(|ending| {
            let last = name
                .rsplit(['_', '-', '.'])
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            last == *ending && plain.len() > ending.len()
        })
}

/// Tells whether a name says password, as against token or key: its value may be any word.
pub(super) fn is_password_name(name: &str) -> bool {
    let plain = plain(name);
    ["password", "passwd", "passphrase", "passcode", "secret"]
        .iter()
        .any(|ending| plain.ends_with(ending))
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Tells whether a value only names a secret or stands for one: a variable, a placeholder, a mask.
pub(super) fn is_reference(value: &str) -> bool {
    // A long value is not looked through: nothing here is long.
    if value.len() > 100 {
        return value.starts_with(['$', '{']) && !value.starts_with("{\"")
            || value.starts_with("[redacted:");
    }
    value.starts_with("[redacted:")
        || value.starts_with('$')
        || value.starts_with("{{")
        || value.starts_with('<') && value.as_bytes().get(1).is_some_and(u8::is_ascii_alphabetic)
        || value.len() > 2 && value.starts_with('%') && value.ends_with('%')
        || !value.is_empty() && value.chars().all(|c| "*.…xX-_".contains(c))
        || [
            "null",
            "none",
            "nil",
            "undefined",
            "true",
            "false",
            "yes",
            "no",
        ]
        .iter()
        .any(|word| value.eq_ignore_ascii_case(word))
}

/// Tells whether a value looks like code that fetches the secret from elsewhere: `self.token`, `next_token()`.
fn is_code(value: &str) -> bool {
    let mut start = value.bytes().take(LOOKED_AT);
    start.clone().any(|byte| b".([".contains(&byte))
        && start.all(|byte| byte.is_ascii_alphabetic() || b"_.()[]:&*!?".contains(&byte))
}

/// Decides on `name operator value` where the name may say secret. `operator` is with the white space around it, `behind`
/// the byte after the value.
pub(super) fn is_assigned_secret(
    name: &str,
    operator: &str,
    value: &str,
    quoted: bool,
    behind: Option<u8>,
) -> bool {
    if !is_secret_name(name) || is_reference(value) {
        return false;
    }
    if quoted {
        // "secret": "" is nothing; a sentence is no secret unless it is a passphrase.
        return is_password_name(name) || !value.contains(' ');
    }
    let spaced = operator.contains([' ', '\t']);
    let colon = operator.contains(':') && !operator.contains('=');
    let loud = name.bytes().all(|byte| !byte.is_ascii_lowercase());
    if !colon && !spaced {
        return loud || !is_code(value);
    }
    let telling = value
        .bytes()
        .take(LOOKED_AT)
        .any(|byte| byte.is_ascii_digit())
        && value.len() >= 6;
    let ends_here = matches!(
        behind,
        None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'`' | b',' | b'}' | b'\\')
    );
    if is_code(value) || !ends_here && !telling {
        return false;
    }
    if colon {
        // `password: swordfish` at the end of a line, or a value that is no word.
        return telling || loud || is_password_name(name) && !is_state(value) || value.len() >= 16;
    }
    telling && value.len() >= 8 && !value.contains(['(', ';'])
}

/// Words that say how a password or token is, in messages.
fn is_state(value: &str) -> bool {
    [
        "expired",
        "invalid",
        "missing",
        "required",
        "wrong",
        "incorrect",
        "empty",
        "unset",
        "set",
        "string",
        "str",
        "ok",
        "valid",
        "optional",
        "unknown",
    ]
    .iter()
    .any(|word| value.eq_ignore_ascii_case(word))
}

/// Tells whether what looks like a password in a URL is the port and more of it.
pub(super) fn begins_with_port(value: &str) -> bool {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    (1..=5).contains(&digits) && matches!(value.as_bytes().get(digits), Some(b'/' | b'?' | b'#'))
}
