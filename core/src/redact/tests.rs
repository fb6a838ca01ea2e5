//! Samples are put together at run time, so that nothing secret-looking stands in the source.
#![expect(clippy::string_slice, reason = "the samples are ASCII")]
use std::collections::BTreeSet;

use serde_json::json;

use super::*;

/// A small generator: the same samples in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn pick(&mut self, alphabet: &str, count: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..count)
            .map(|_| letters[usize::try_from(self.roll()).unwrap() % letters.len()])
            .collect()
    }

    /// Fills a template: parts divided by `|`, of which `@a36` stands for 36 random characters of an alphabet.
    fn fill(&mut self, template: &str) -> String {
        template
            .split('|')
            .map(|part| {
                let Some(kind) = part.strip_prefix('@') else {
                    return part.to_owned();
                };
                let (kind, count) = kind.split_at(1);
                self.pick(alphabet(kind), count.parse().unwrap())
            })
            .collect()
    }
}

fn alphabet(kind: &str) -> &'static str {
    match kind {
        "a" => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "h" => "0123456789abcdef",
        "d" => "123456789",
        "l" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "u" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "x" => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-",
        "b" => "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/",
        other => panic!("no alphabet {other}"),
    }
}

/// Each vendor's format: the rule that has to name it, and how it is built.
const FORMATS: &[(&str, &str)] = &[
    ("anthropic-key", "sk-|ant-|api03-|@x90"),
    ("anthropic-key", "sk-|ant-|oat01-|@x90"),
    ("openai-key", "sk-|proj-|@x80"),
    ("openai-key", "sk-|svcacct-|@x60"),
    ("openai-key", "sk-|@a20|T3Blbk|FJ|@a20"),
    ("openrouter-key", "sk-|or-v1-|@h64"),
    ("sk-key", "sk-|@h32"),
    ("groq-key", "gs|k_|@a52"),
    ("xai-key", "xa|i-|@a80"),
    ("perplexity-key", "ppl|x-|@a48"),
    ("replicate-token", "r8|_|@a37"),
    ("huggingface-token", "h|f_|@a34"),
    ("nvidia-key", "nva|pi-|@x64"),
    ("cerebras-key", "cs|k-|@l48"),
    ("github-token", "gh|p_|@a36"),
    ("github-token", "gh|o_|@a36"),
    ("github-token", "gh|u_|@a36"),
    ("github-token", "gh|s_|@a36"),
    ("github-token", "gh|r_|@a76"),
    ("github-token", "github|_pat_|@a22|_|@a59"),
    ("gitlab-token", "gl|pat-|@x20"),
    ("gitlab-token", "gl|rt-|@x20"),
    ("gitlab-token", "gl|dt-|@x20"),
    ("gitlab-token", "GR13|48941|@x20"),
    ("bitbucket-token", "AT|BB|@a32"),
    ("atlassian-token", "ATA|TT3|@x180"),
    ("npm-token", "np|m_|@a36"),
    ("pypi-token", "pypi-|AgEIcHlwaS5vcmc|@x80"),
    ("rubygems-key", "ruby|gems_|@h48"),
    ("crates-io-token", "ci|o|@a32"),
    ("docker-token", "dckr|_pat_|@x27"),
    ("clojars-token", "CLO|JARS_|@l60"),
    ("aws-access-key", "AK|IA|@u16"),
    ("aws-access-key", "AS|IA|@u16"),
    ("google-api-key", "AI|za|@x35"),
    ("google-oauth-token", "ya|29.|@x100"),
    ("google-oauth-token", "GOC|SPX-|@x28"),
    ("google-refresh-token", "1/|/0|@x60"),
    ("azure-storage-key", "Account|Key=|@b86|=="),
    ("azure-client-secret", "@a3|8|Q~|@x34"),
    ("digitalocean-token", "do|p_v1_|@h64"),
    ("heroku-key", "HR|KU-|@x60"),
    ("netlify-token", "nf|p_|@a36"),
    ("tailscale-key", "ts|key-auth-|@a12|CNTRL-|@a32"),
    ("pulumi-token", "pu|l-|@h40"),
    ("databricks-token", "da|pi|@h32"),
    ("supabase-key", "sb|p_|@h40"),
    ("planetscale-token", "pscale|_tkn_|@x43"),
    ("vault-token", "hv|s.|@x90"),
    ("terraform-token", "@a14|.atlas|v1.|@x67"),
    ("doppler-token", "dp.|pt.|@a43"),
    ("1password-token", "ops|_eyJ|@x250"),
    ("age-key", "AGE-SECRET|-KEY-1|@u58"),
    ("grafana-token", "gl|sa_|@a32|_|@h8"),
    ("newrelic-key", "NR|AK-|@u27"),
    ("sentry-token", "sntr|yu_|@h64"),
    ("sonar-token", "sq|p_|@h40"),
    ("circleci-token", "CCI|PAT_|@a22|_|@h40"),
    ("postman-key", "PM|AK-|@h24|-|@h34"),
    ("slack-token", "xo|xb-|@d12|-|@d12|-|@a24"),
    ("slack-token", "xo|xp-|@d12|-|@d12|-|@h32"),
    ("slack-token", "xa|pp-1-|@u11|-|@d13|-|@h64"),
    ("telegram-token", "@d10|:A|A|@x33"),
    ("stripe-key", "sk|_live_|@a24"),
    ("stripe-key", "rk|_test_|@a24"),
    ("stripe-key", "wh|sec_|@a32"),
    ("square-token", "sq0|atp-|@x22"),
    ("shopify-token", "shp|at_|@h32"),
    ("twilio-key", "S|K|@h32"),
    ("sendgrid-key", "S|G.|@x22|.|@x43"),
    ("mailgun-key", "ke|y-|@h32"),
    ("mailchimp-key", "@h32|-u|s12"),
    ("linear-key", "lin|_api_|@a40"),
    ("notion-token", "nt|n_|@a46"),
    ("figma-token", "fig|d_|@x40"),
    ("airtable-token", "pa|t|@a14|.|@h64"),
    ("jwt", "ey|Jh|@x34|.ey|J|@x60|.|@x43"),
];

/// Where a secret stands. `{}` is the secret.
const PLACES: &[&str] = &[
    "{}",
    "the build said {} and went on",
    "(see {})",
    "`{}`",
    "first line\n{}\nlast line",
    "{\"text\": \"{}\", \"id\": 7}",
    "[\"{}\",\"b\"]",
    "curl 'https://example.org/?a=1&x={}&b=2'",
    "\"{\\\"text\\\":\\\"{}\\\"}\"",
    "a={},b",
];

/// The part of a secret that must not be seen: all but its beginning and its end, which may be no secret.
fn core_of(secret: &str) -> &str {
    &secret[secret.len() / 2 - 3..secret.len() / 2 + 5]
}

#[test]
fn every_pattern_compiles_and_has_a_sample() {
    let sampled: BTreeSet<&str> = FORMATS.iter().map(|(rule, _)| *rule).collect();
    // Those that need a text of their own stand in other tests.
    let elsewhere = [
        "slack-webhook",
        "discord-webhook",
        "discord-token",
        "azure-signature",
        "fly-token",
    ];
    for rule in RULES {
        assert!(compile(rule).is_some(), "{}", rule.id);
        if rule.shape == Shape::Token && !elsewhere.contains(&rule.id) {
            assert!(sampled.contains(rule.id), "{}", rule.id);
        }
    }
    assert!(sampled.len() >= 40);
}

#[test]
fn every_format_is_masked_in_every_place() {
    let mut dice = Dice(0x5eed);
    let mut samples = 0;
    for (rule, template) in FORMATS {
        for place in PLACES {
            let secret = dice.fill(template);
            let sample = place.replace("{}", &secret);
            let masked = text(&sample);
            assert!(
                !masked.text.contains(core_of(&secret)) && masked.count == 1,
                "{rule} in {place:?}: {sample} became {}",
                masked.text
            );
            if !template.contains("Key=") {
                let whole = place.replace("{}", &format!("[redacted:{rule}]"));
                assert_eq!(masked.text, whole, "{sample}");
            }
            assert_eq!(text(&masked.text).count, 0, "{}", masked.text);
            samples += 1;
        }
    }
    assert!(samples > 500, "{samples}");
}

#[test]
fn neighbours_are_all_masked() {
    let mut dice = Dice(99);
    for (_, template) in FORMATS {
        let secrets: Vec<String> = (0..5).map(|_| dice.fill(template)).collect();
        for separator in [" ", "\n", ","] {
            let masked = text(&secrets.join(separator));
            for secret in &secrets {
                assert!(
                    !masked.text.contains(core_of(secret)),
                    "{template}: {}",
                    masked.text
                );
            }
        }
    }
}

#[test]
fn a_well_known_prefix_needs_no_entropy() {
    for (prefix, rest) in [
        ("gh|p_", "a"),
        ("gl|pat-", "0"),
        ("xo|xb-", "1"),
        ("sk|_live_", "z"),
        ("sk|-", "a"),
        ("sk|-test-", "a"),
        ("hf|_", "a"),
        ("gs|k_", "b"),
        ("xa|i-", "c"),
    ] {
        let secret = Dice(1).fill(prefix) + &rest.repeat(36);
        assert_eq!(text(&secret).count, 1, "{secret}");
    }
}

/// Texts with a secret in a telling place; the secret is `swordfish-7x` or what is named.
#[test]
fn a_telling_place_is_enough() {
    for sample in [
        "export GITHUB_TOKEN={}",
        "API_KEY={} make deploy",
        "printf 'TOKEN={}' | sh",
        "password: {}",
        "  db_password: \"{}\"",
        "aws_secret_access_key = {}",
        "{\"clientSecret\":\"{}\"}",
        "{\"clientSecret\" : '{}'}",
        "\"{\\\"api_key\\\":\\\"{}\\\"}\"",
        "let secret = \"{}\";",
        "secret := \"{}\"",
        "'password' => '{}',",
        "psql --password {} db",
        "tool --token={}",
        "tool --api-key '{}'",
        "[\"tool\",\"--token\",\"{}\"]",
        "curl -u admin:{} https://example.org",
        "curl --user 'admin:{}' https://example.org",
        "curl -H 'Authorization: Bearer {}' https://example.org",
        "curl -H \"Authorization: Basic {}\"",
        "Authorization: {}",
        "{\"Authorization\":\"Bearer {}\"}",
        "X-Api-Key: {}",
        "PRIVATE-TOKEN: {}",
        "Cookie: session={}",
        "Set-Cookie: sid={}; Path=/",
        "https://user:{}@example.org/path",
        "postgres://app:{}@db:5432/app?sslmode=require",
        "redis://:{}@cache:6379/0",
        "https://example.org/cb?access_token={}&x=1",
        "https://example.org/?x=1&client_secret={}",
        "//registry.example.invalid/:_authToken={}",
        "//registry.example.invalid/:_auth={}",
        "Server=db;User Id=sa;Password={};Encrypt=yes",
        "openssl rsa -passin pass:{} -in key.pem",
        "ENV DB_PWD={}",
        "PGPASSWORD={} psql",
        "machine.credential={}",
    ] {
        for secret in ["swordfish-7x", "Tr0ub4dor&3", "9f86d081884c7d659a2f"] {
            let text_with = sample.replace("{}", secret);
            let masked = text(&text_with);
            let seen = masked.text.contains(secret) || masked.text.contains(&secret[..8]);
            assert!(
                !seen && masked.count == 1,
                "{text_with} became {}",
                masked.text
            );
            assert_eq!(
                text(&masked.text),
                Redacted {
                    text: masked.text.clone(),
                    count: 0
                }
            );
        }
    }
}

#[test]
fn odd_tokens_and_webhooks() {
    let mut dice = Dice(4);
    for (rule, before, template) in [
        (
            "slack-webhook",
            "https://hooks.slack.com/services/",
            "T|@u9|/B|@u9|/|@a24",
        ),
        (
            "discord-webhook",
            "https://discord.com/api/webhooks/",
            "1234567890/|@x68",
        ),
        ("discord-token", "discord bot ", "M|@a23|.|@x6|.|@x38"),
        (
            "azure-signature",
            "https://a.blob.core.windows.net/c?sv=1&",
            "si|g=|@a40|%3D",
        ),
        ("fly-token", "", "Fly|V1 |fm2_|@a60"),
        ("url-token", "https://", "@a40"),
    ] {
        let secret = dice.fill(template);
        let after = if rule == "url-token" {
            "@example.org/x.git"
        } else {
            " end"
        };
        let sample = format!("{before}{secret}{after}");
        let masked = text(&sample);
        assert!(
            masked.text.contains(&format!("[redacted:{rule}]")),
            "{sample}: {}",
            masked.text
        );
        assert!(
            !masked.text.contains(core_of(&secret)),
            "{sample}: {}",
            masked.text
        );
        assert!(masked.text.ends_with(after));
    }
}

#[test]
fn private_keys_go_whole() {
    let mut dice = Dice(8);
    for kind in ["RSA ", "", "OPENSSH ", "EC ", "ENCRYPTED ", "PGP "] {
        let block = if kind == "PGP " { " BLOCK" } else { "" };
        let lines: Vec<String> = (0..6).map(|_| dice.fill("@b64")).collect();
        for newline in ["\n", "\\n", "\r\n"] {
            let begin = format!("-----BEGIN {kind}PRIVATE KEY{block}-----");
            let end = format!("-----END {kind}PRIVATE KEY{block}-----");
            let body = lines.join(newline);
            let whole = format!("a\n{begin}{newline}{body}{newline}{end}\nb");
            assert_eq!(text(&whole).text, "a\n[redacted:private-key]\nb");
            let cut = format!("a\n{begin}{newline}{body}");
            assert_eq!(text(&cut).text, "a\n[redacted:private-key]");
            let two = format!("{begin}{newline}{body} # {begin}{newline}{body}{newline}{end}");
            let masked = text(&two);
            assert!(
                lines
                    .iter()
                    .all(|line| !masked.text.contains(line.as_str())),
                "{}",
                masked.text
            );
        }
    }
    let public = "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----";
    assert_eq!(text(public).text, public);
}

#[test]
fn what_is_no_secret_stays_readable() {
    let mut dice = Dice(7);
    let templates = [
        "commit @h40",
        "commit @h64",
        "@h7 Fix the login",
        "index @h7..@h7 100644",
        "tree @h40+@h64",
        "@h8-@h4-4@h3-a@h3-@h12",
        "01@u24",
        "sha256:@h64",
        "h1:@b43=",
        "\"integrity\": \"sha512-@b86==\"",
        "checksum = \"@h64\"",
        "source = \"registry+https://example.org/index#@h40\"",
        "/nix/store/@l32-glibc-2.39/lib",
        "target/debug/deps/takeup-@h16",
        "session fox_@d13_@h16",
        "ETag: \"@h32\"",
        "build @a12 done",
        "ses_@a26",
        "data:image/png;base64,@b80",
        "ssh-ed25519 @b68 user@host",
        "key fingerprint SHA256:@b43",
        "https://example.org/a/@h40?tab=@a10",
    ];
    let mut samples: Vec<String> = Vec::new();
    for template in templates {
        for _ in 0..10 {
            let mut filled = String::new();
            for (number, part) in template.split('@').enumerate() {
                let is_filled = number > 0
                    && part.chars().next().is_some_and(|c| "ahdlubx".contains(c))
                    && part.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
                if is_filled {
                    let digits: String = part
                        .chars()
                        .skip(1)
                        .take_while(char::is_ascii_digit)
                        .collect();
                    filled += &dice.pick(alphabet(&part[..1]), digits.parse().unwrap());
                    filled += &part[1 + digits.len()..];
                } else {
                    filled += if number > 0 { "@" } else { "" };
                    filled += part;
                }
            }
            samples.push(filled);
        }
    }
    for plain in [
        "max_tokens=4096",
        "\"max_tokens\": 4096, \"tokens\": 17",
        "tokenizer=gpt2 tokens: 12",
        "token: expired",
        "password is required",
        "Password: ",
        "the secret: be kind to yourself",
        "let token = lexer.next_token();",
        "token = self.peek()",
        "fn password(&self) -> &str",
        "if token == other { return }",
        "export TOKEN=$OTHER_TOKEN",
        "Authorization: Bearer $TOKEN",
        "curl -H \"Authorization: Bearer ${TOKEN}\"",
        "password=<your password>",
        "api_key: \"{{ secrets.KEY }}\"",
        "PWD=/home/user/project",
        "OLDPWD=/home/user",
        "primary_key=id",
        "monkey: banana",
        "docker run -u 1000:1000 -p 8080:80 image",
        "git clone git@example.org:owner/name.git",
        "https://example.org:8080/path?x=mail@example.org",
        "ssh://git@example.org/x.git",
        "mail to someone@example.org",
        "cargo test -p core -- --token-count 3",
        "tool --password-file /run/x --key-id 7",
        "tool --no-token --verbose",
        "task-0123456789abcdef0123456789abcdef",
        "risk-assessment-of-the-whole-project",
        "sk-learn",
        "std::sync::Arc<Token>",
        "see docs/tokens.md and src/password_reset.rs",
        "Basic tests pass: 12",
        "the bearer of this letter is a friend",
        "authorization",
        "cookies: none",
        "keyboard=us",
        "token=",
        "secret: \"\"",
        "{\"token\":null,\"password\":false}",
        "",
    ] {
        samples.push(plain.to_owned());
    }
    for sample in &samples {
        assert_eq!(text(sample).text, *sample);
    }
    assert!(samples.len() > 200, "{}", samples.len());
}

#[test]
fn commands_are_masked_by_argument() {
    let token = Dice(3).fill("gh|p_|@a36");
    let url = format!("https://x:{token}@github.com/a.git");
    for (args, masked) in [
        (
            vec!["tool", "--token", "abc"],
            vec!["tool", "--token", "[redacted:argument]"],
        ),
        (
            vec!["tool", "--token=abc"],
            vec!["tool", "--token=[redacted:argument]"],
        ),
        (
            vec!["tool", "--token", "--verbose"],
            vec!["tool", "--token", "--verbose"],
        ),
        (
            vec!["curl", "-u", "me:abc"],
            vec!["curl", "-u", "me:[redacted:argument]"],
        ),
        (
            vec!["mysql", "-pabc", "db"],
            vec!["mysql", "-p[redacted:argument]", "db"],
        ),
        (
            vec!["/usr/bin/sshpass", "-p", "abc", "ssh"],
            vec!["/usr/bin/sshpass", "-p", "[redacted:argument]", "ssh"],
        ),
        (
            vec!["env", "API_KEY=abc", "make"],
            vec!["env", "API_KEY=[redacted:assignment]", "make"],
        ),
        (
            vec!["sh", "-c", "X_TOKEN=abc; echo"],
            vec!["sh", "-c", "X_TOKEN=[redacted:assignment]; echo"],
        ),
        (
            vec!["git", "clone", &url],
            vec![
                "git",
                "clone",
                "https://x:[redacted:github-token]@github.com/a.git",
            ],
        ),
        (
            vec!["cargo", "test", "-p", "core"],
            vec!["cargo", "test", "-p", "core"],
        ),
        (
            vec!["echo", &token],
            vec!["echo", "[redacted:github-token]"],
        ),
    ] {
        let first = command(&args);
        assert_eq!(first.args, masked);
        assert_eq!(first.count, usize::from(first.args != args));
        let again = command(&first.args);
        assert_eq!((again.args, again.count), (first.args.clone(), 0));
        // The line is a text like any other, and nothing is left in it.
        assert_eq!(text(&first.line()).count, 0, "{}", first.line());
        assert_eq!(shlex::split(&first.line()).unwrap(), first.args);
    }
}

#[test]
fn words_of_a_shell_go_whole_however_they_are_quoted() {
    for line in [
        "mysql -uroot -pzandgobi shop",
        "/usr/bin/mysqldump -u root -pzandgobi --all-databases",
        "sh -c 'mysql -h db -pzandgobi shop'",
        "sh -c \"mysql -h db -p\\\"zandgobi\\\" shop\"",
        "sshpass -pzandgobi ssh host",
        "mysql -p'zandgobi' shop",
        "PASSWORD=zand\\ gobi make",
        "PASSWORD=zand\\;gobi make",
        "PASSWORD=zand\\'gobi make",
        "PASSWORD=$'zand gobi' make",
        "deploy --password zand\\ gobi --to host",
        "deploy --password 'zand'\\''gobi' --to host",
        "deploy --password 'zand'\"'\"'gobi' --to host",
        "sh -c \"deploy --password 'zand'\\\\''gobi' --to host\"",
        "sh -c 'deploy --password \\\"zand gobi\\\" --to host'",
        "DB_PASSWORD='zand'\\''gobi' make",
        "{\"command\": \"PASSWORD='zand'\\\\''gobi' make\"}",
    ] {
        let masked = text(line).text;
        assert!(
            !masked.contains("zand") && !masked.contains("gobi"),
            "{line} -> {masked}"
        );
        assert_eq!(text(&masked).text, masked, "{line}");
    }
    for line in [
        "docker run --name mysql -p3306:3306 image",
        "mysql -P3306 -h db shop",
        "mysql -p shop",
        "mysql -p$PASSWORD shop",
        "mysql -p shop | grep -pattern",
        "apt-get install mysql && mkdir -p/tmp/x",
    ] {
        assert_eq!(text(line).text, line);
    }
    let sudo = command(&["sudo", "mysql", "-pzandgobi"]);
    assert_eq!(sudo.args, ["sudo", "mysql", "-p[redacted:argument]"]);
    let json = r#"{"a":{"password":"x y z","b":'c'},"d":"e"}"#;
    let masked = text(json).text;
    assert!(masked.ends_with(r#"","b":'c'},"d":"e"}"#), "{masked}");
}

#[test]
fn json_stays_json() {
    let token = Dice(5).fill("gl|pat-|@x20");
    let value = json!({
        "env": {"API_TOKEN": "abc", "EMPTY_TOKEN": "", "PATH": "/bin"},
        "args": ["--password", "abc", format!("--x={token}")],
        "log": format!("said \"{token}\"\nand more"),
        "password": 1234,
        "tokens": 7,
        "secret": {"inner": "visible"},
        "token": null,
        (token.clone()): 1,
    });
    let (masked, count) = json(&value);
    assert_eq!(
        masked,
        json!({
            "env": {"API_TOKEN": "[redacted:field]", "EMPTY_TOKEN": "", "PATH": "/bin"},
            "args": ["--password", "[redacted:argument]", "--x=[redacted:gitlab-token]"],
            "log": "said \"[redacted:gitlab-token]\"\nand more",
            "password": "[redacted:field]",
            "tokens": 7,
            "secret": {"inner": "visible"},
            "token": null,
            "[redacted:gitlab-token]": 1,
        })
    );
    assert_eq!(count, 6);
    assert_eq!(json(&masked), (masked.clone(), 0));
    // The same, printed first: what is masked in the text is still JSON.
    let printed = text(&serde_json::to_string_pretty(&value).unwrap());
    assert!(
        !printed.text.contains("glpat") && !printed.text.contains("abc"),
        "{}",
        printed.text
    );
    assert!(
        serde_json::from_str::<Value>(&printed.text).is_ok(),
        "{}",
        printed.text
    );
}

#[test]
fn values_of_the_environment_are_known() {
    let env = Env::of(
        [
            ("DEPLOY_TOKEN", "plain words of no format"),
            ("SHORT_TOKEN", "abc"),
            ("GIT_AUTHOR_NAME", "Somebody Longer"),
            ("REF_TOKEN", "$OTHER_TOKEN"),
        ],
        "/",
    );
    let masker = Masker::of(&env);
    assert_eq!(
        masker
            .text("it printed plain words of no format, abc, Somebody Longer")
            .text,
        "it printed [redacted:environment], abc, Somebody Longer"
    );
    assert!(!format!("{masker:?}").contains("plain words"));
}

#[test]
fn text_that_is_made_to_be_slow_is_not() {
    // Each would take minutes if a rule looked at the rest of the text again and again; ten megabytes are in the benchmark.
    let size = 1 << 18;
    for piece in [
        "sk-",
        "token=",
        "token=$",
        "token:a.",
        "token=\"",
        "token='",
        "--token ",
        "--x ",
        "eyJ",
        "eyJhbGciOi.",
        "://",
        "http://a:",
        "http://a:1/",
        "://a:b@",
        "authorization:",
        "authorization:$",
        "bearer ",
        "-u a:",
        "-u 1:",
        "cookie: a",
        "passpass",
        "key=",
        "\\\"",
        "token=\\\\\\",
        "-----BEGIN PRIVATE KEY-----",
        "-----END",
        "[redacted:",
        "token=[redacted:x]",
        "AKIA",
        "xoxb-1",
        "ä",
        "\u{0}",
        "a",
        "1//0",
        "pat",
        "password: a\n",
        "password:a:",
    ] {
        let hostile = piece.repeat(size / piece.len());
        let masked = text(&hostile);
        assert_eq!(text(&masked.text).count, 0, "{piece}");
    }
}

mod random {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn twice_is_once(parts in prop::collection::vec(
            prop_oneof![
                "[a-zA-Z0-9_=:\"' ./@&-]{0,12}",
                Just("token=".to_owned()),
                Just("password: ".to_owned()),
                Just("--token ".to_owned()),
                Just("https://u:".to_owned()),
                Just("Authorization: Bearer ".to_owned()),
                Just("\n".to_owned()),
                Just("ü".to_owned()),
                (0_u64..1_000, 0..FORMATS.len()).prop_map(|(seed, at)| Dice(seed + 1).fill(FORMATS[at].1)),
            ],
            0..12,
        )) {
            let once = text(&parts.concat());
            let twice = text(&once.text);
            prop_assert_eq!(&twice.text, &once.text);
            prop_assert_eq!(twice.count, 0);
        }
    }
}

#[test]
fn a_short_text_is_searched_for_the_same_words() {
    for rule in RULES {
        for word in rule.keywords {
            assert!(!word.is_empty());
            for text in [
                (*word).to_owned(),
                format!("x{}y", word.to_ascii_uppercase()),
                word.chars().skip(1).collect(),
            ] {
                assert_eq!(found_in_short(&text), found_in_long(&text), "{text}");
            }
        }
    }
    assert!(!found_in_short("main").contains(&true));
}
