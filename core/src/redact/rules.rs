//! The table: what each format looks like, as its vendor describes it.
//!
//! A prefix that a vendor gives to nothing else needs no entropy: even a made-up value behind it is masked. Prefixes that are
//! ordinary words as well have a minimum. The secret is the group `s`.

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name in the mask.
    pub(super) id: &'static str,
    /// One of these stands in every text that the pattern matches, whatever its case.
    pub(super) keywords: &'static [&'static str],
    /// The pattern, over bytes.
    pub(super) pattern: &'static str,
    /// The least entropy of the secret, in bits a byte.
    pub(super) entropy: f64,
    /// What has to hold besides.
    pub(super) shape: Shape,
}

/// What a rule's matches are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A vendor's format.
    Token,
    /// A block of a private key.
    KeyBlock,
    /// A name, an operator and a value.
    Assignment,
    /// A flag and the argument after it.
    Flag,
    /// `-u user:password`.
    UserFlag,
    /// A header that authenticates.
    Header,
    /// A header of cookies.
    Cookie,
    /// `-pPASSWORD`.
    ShortPassword,
    /// `scheme://user:password@`.
    UrlPassword,
    /// `scheme://token@`.
    UrlToken,
}

const fn token(id: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule {
        id,
        keywords,
        pattern,
        entropy: 0.0,
        shape: Shape::Token,
    }
}

const fn random(
    id: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
    entropy: f64,
) -> Rule {
    Rule {
        id,
        keywords,
        pattern,
        entropy,
        shape: Shape::Token,
    }
}

const fn context(
    id: &'static str,
    keywords: &'static [&'static str],
    pattern: &'static str,
    shape: Shape,
) -> Rule {
    Rule {
        id,
        keywords,
        pattern,
        entropy: 0.0,
        shape,
    }
}

pub(super) static RULES: &[Rule] = &[
    // Models and their providers.
    token(
        "anthropic-key",
        &["sk-ant-"],
        r"(?P<s>sk-ant-[A-Za-z0-9_-]{8,})",
    ),
    token(
        "openai-key",
        &["sk-proj-", "sk-svcacct-", "sk-admin-", "t3blbkfj"],
        r"(?P<s>sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{8,}|sk-[A-Za-z0-9_-]*T3BlbkFJ[A-Za-z0-9_-]+)",
    ),
    token(
        "openrouter-key",
        &["sk-or-"],
        r"(?P<s>sk-or-(?:v[0-9]+-)?[A-Za-z0-9_-]{16,})",
    ),
    // Words with hyphens between them are names of classes and branches; one long word is none.
    token(
        "sk-key",
        &["sk-"],
        r"(?:^|[^A-Za-z0-9_-])(?P<s>sk-(?:test-|live-)?[A-Za-z0-9]{22,})",
    ),
    random(
        "sk-key",
        &["sk-"],
        r"(?:^|[^A-Za-z0-9_-])(?P<s>sk-[A-Za-z0-9_-]{20,})",
        3.3,
    ),
    token(
        "groq-key",
        &["gsk_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>gsk_[A-Za-z0-9]{20,})",
    ),
    token(
        "xai-key",
        &["xai-"],
        r"(?:^|[^A-Za-z0-9])(?P<s>xai-[A-Za-z0-9]{30,})",
    ),
    token(
        "perplexity-key",
        &["pplx-"],
        r"(?:^|[^A-Za-z0-9])(?P<s>pplx-[A-Za-z0-9]{30,})",
    ),
    token(
        "replicate-token",
        &["r8_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>r8_[A-Za-z0-9]{30,})",
    ),
    token(
        "huggingface-token",
        &["hf_", "api_org_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>(?:hf_|api_org_)[A-Za-z0-9]{30,})",
    ),
    token(
        "nvidia-key",
        &["nvapi-"],
        r"(?P<s>nvapi-[A-Za-z0-9_-]{20,})",
    ),
    token(
        "cerebras-key",
        &["csk-"],
        r"(?:^|[^A-Za-z0-9])(?P<s>csk-[a-z0-9]{40,})",
    ),
    // Forges and registries.
    token(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(?P<s>gh[pousr]_[A-Za-z0-9_.-]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    ),
    token(
        "gitlab-token",
        &[
            "glpat-",
            "gldt-",
            "glptt-",
            "glrt-",
            "glcbt-",
            "glft-",
            "glimt-",
            "glsoat-",
            "glagent-",
            "gloas-",
            "glffct-",
            "gr1348941",
        ],
        r"(?P<s>(?:glpat|gldt|glptt|glrt|glcbt|glft|glimt|glsoat|glagent|gloas|glffct)-[A-Za-z0-9_.-]{16,}|GR1348941[A-Za-z0-9_-]{16,})",
    ),
    token(
        "bitbucket-token",
        &["atbb", "atctt3"],
        r"(?P<s>ATBB[A-Za-z0-9]{24,}|ATCTT3[A-Za-z0-9_=-]{50,})",
    ),
    token(
        "atlassian-token",
        &["atatt3"],
        r"(?P<s>ATATT3[A-Za-z0-9_=-]{50,})",
    ),
    token(
        "npm-token",
        &["npm_"],
        r"(?:^|[^A-Za-z0-9_])(?P<s>npm_[A-Za-z0-9]{36,})",
    ),
    token(
        "pypi-token",
        &["pypi-ag"],
        r"(?P<s>pypi-Ag[A-Za-z0-9_-]{30,})",
    ),
    token(
        "rubygems-key",
        &["rubygems_"],
        r"(?P<s>rubygems_[0-9a-f]{32,})",
    ),
    random(
        "crates-io-token",
        &["cio"],
        r"(?:^|[^A-Za-z0-9])(?P<s>cio[A-Za-z0-9]{32})(?:$|[^A-Za-z0-9])",
        3.5,
    ),
    token(
        "docker-token",
        &["dckr_pat_", "dckr_oat_"],
        r"(?P<s>dckr_[po]at_[A-Za-z0-9_-]{20,})",
    ),
    token(
        "clojars-token",
        &["clojars_"],
        r"(?P<s>CLOJARS_[A-Za-z0-9]{40,})",
    ),
    // Clouds.
    token(
        "aws-access-key",
        &["akia", "asia", "abia", "acca"],
        r"(?:^|[^A-Za-z0-9])(?P<s>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?:$|[^A-Za-z0-9])",
    ),
    token("google-api-key", &["aiza"], r"(?P<s>AIza[A-Za-z0-9_-]{35})"),
    token(
        "google-oauth-token",
        &["ya29.", "gocspx-"],
        r"(?P<s>ya29\.[A-Za-z0-9_.-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
    ),
    random(
        "google-refresh-token",
        &["1//0"],
        r"(?:^|[^A-Za-z0-9])(?P<s>1//0[A-Za-z0-9_-]{30,})",
        3.0,
    ),
    token(
        "azure-storage-key",
        &["accountkey="],
        r"AccountKey=(?P<s>[A-Za-z0-9+/]{40,}={0,2})",
    ),
    token(
        "azure-signature",
        &["sig="],
        r"[?&]sig=(?P<s>[A-Za-z0-9%+/=_-]{30,})",
    ),
    random(
        "azure-client-secret",
        &["q~"],
        r"(?:^|[^A-Za-z0-9_~.-])(?P<s>[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})",
        3.0,
    ),
    token(
        "digitalocean-token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        r"(?P<s>do[por]_v1_[0-9a-f]{32,})",
    ),
    token("heroku-key", &["hrku-"], r"(?P<s>HRKU-[A-Za-z0-9_-]{30,})"),
    token(
        "netlify-token",
        &["nfp_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>nfp_[A-Za-z0-9_-]{30,})",
    ),
    token(
        "fly-token",
        &["flyv1 ", "fo1_"],
        r"(?P<s>FlyV1 [A-Za-z0-9_+/=,-]{20,}|\bfo1_[A-Za-z0-9_-]{30,})",
    ),
    token(
        "tailscale-key",
        &["tskey-"],
        r"(?P<s>tskey-[a-z]+-[A-Za-z0-9-]{16,})",
    ),
    token(
        "pulumi-token",
        &["pul-"],
        r"(?:^|[^A-Za-z0-9])(?P<s>pul-[0-9a-f]{40})",
    ),
    token(
        "databricks-token",
        &["dapi"],
        r"(?:^|[^A-Za-z0-9])(?P<s>dapi[0-9a-f]{32}(?:-[0-9])?)",
    ),
    token(
        "supabase-key",
        &["sbp_", "sb_secret_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{20,})",
    ),
    token(
        "planetscale-token",
        &["pscale_"],
        r"(?P<s>pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{16,})",
    ),
    // Vaults and observers.
    token(
        "vault-token",
        &["hvs.", "hvb.", "hvr."],
        r"(?:^|[^A-Za-z0-9])(?P<s>hv[sbr]\.[A-Za-z0-9_-]{20,})",
    ),
    token(
        "terraform-token",
        &[".atlasv1."],
        r"(?P<s>[A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9_-]{40,})",
    ),
    token(
        "doppler-token",
        &[
            "dp.pt.",
            "dp.st.",
            "dp.ct.",
            "dp.sa.",
            "dp.scim.",
            "dp.audit.",
        ],
        r"(?P<s>dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]+\.)?[A-Za-z0-9]{30,})",
    ),
    token(
        "1password-token",
        &["ops_eyj"],
        r"(?P<s>ops_eyJ[A-Za-z0-9_=-]{50,})",
    ),
    token(
        "age-key",
        &["age-secret-key-1"],
        r"(?P<s>AGE-SECRET-KEY-1[A-Z0-9]{20,})",
    ),
    token(
        "grafana-token",
        &["glsa_", "glc_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})",
    ),
    token(
        "newrelic-key",
        &["nrak-", "nrjs-", "nrii-"],
        r"(?P<s>NR(?:AK|JS|II)-[A-Za-z0-9_-]{16,})",
    ),
    token(
        "sentry-token",
        &["sntrys_", "sntryu_"],
        r"(?P<s>sntry[su]_[A-Za-z0-9_=+/-]{30,})",
    ),
    token(
        "sonar-token",
        &["sqp_", "squ_", "sqa_"],
        r"(?:^|[^A-Za-z0-9])(?P<s>sq[pua]_[0-9a-f]{40})",
    ),
    token(
        "circleci-token",
        &["ccipat_"],
        r"(?P<s>CCIPAT_[A-Za-z0-9]+_[0-9a-f]{30,})",
    ),
    token(
        "postman-key",
        &["pmak-"],
        r"(?P<s>PMAK-[0-9a-f]{24}-[0-9a-f]{34})",
    ),
    // Messages, payments, work.
    token(
        "slack-token",
        &[
            "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xoxc-", "xoxd-",
            "xapp-",
        ],
        r"(?P<s>xox[bparscd]-[A-Za-z0-9%-]{10,}|xoxe(?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,})",
    ),
    token(
        "slack-webhook",
        &["hooks.slack.com/"],
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<s>[A-Za-z0-9/_-]{20,})",
    ),
    token(
        "discord-webhook",
        &["/api/webhooks/"],
        r"discord(?:app)?\.com/api/webhooks/[0-9]+/(?P<s>[A-Za-z0-9_-]{30,})",
    ),
    random(
        "discord-token",
        &["discord", "bot"],
        r"(?:^|[^A-Za-z0-9_.-])(?P<s>[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})(?:$|[^A-Za-z0-9_.-])",
        4.0,
    ),
    random(
        "telegram-token",
        &[":aa"],
        r"(?:^|[^A-Za-z0-9])(?P<s>(?:bot)?[0-9]{8,10}:AA[A-Za-z0-9_-]{33})",
        3.5,
    ),
    token(
        "stripe-key",
        &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        r"(?P<s>[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})",
    ),
    token(
        "square-token",
        &["sq0atp-", "sq0csp-", "sq0idp-"],
        r"(?P<s>sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,})",
    ),
    token(
        "shopify-token",
        &["shpat_", "shpss_", "shpca_", "shppa_"],
        r"(?P<s>shp(?:at|ss|ca|pa)_[A-Fa-f0-9]{32})",
    ),
    token(
        "twilio-key",
        &[
            "sk0", "sk1", "sk2", "sk3", "sk4", "sk5", "sk6", "sk7", "sk8", "sk9", "ska", "skb",
            "skc", "skd", "ske", "skf",
        ],
        r"(?:^|[^A-Za-z0-9])(?P<s>SK[0-9a-f]{32})(?:$|[^A-Za-z0-9])",
    ),
    token(
        "sendgrid-key",
        &["sg."],
        r"(?:^|[^A-Za-z0-9])(?P<s>SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,})",
    ),
    token(
        "mailgun-key",
        &["key-"],
        r"(?:^|[^A-Za-z0-9])(?P<s>key-[0-9a-f]{32})(?:$|[^A-Za-z0-9])",
    ),
    token(
        "mailchimp-key",
        &["-us"],
        r"(?:^|[^A-Za-z0-9])(?P<s>[0-9a-f]{32}-us[0-9]{1,2})(?:$|[^A-Za-z0-9])",
    ),
    token(
        "linear-key",
        &["lin_api_", "lin_oauth_"],
        r"(?P<s>lin_(?:api|oauth)_[A-Za-z0-9]{30,})",
    ),
    token(
        "notion-token",
        &["ntn_", "secret_"],
        r"(?:^|[^A-Za-z0-9_])(?P<s>ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})(?:$|[^A-Za-z0-9])",
    ),
    token(
        "figma-token",
        &["figd_", "figo_"],
        r"(?P<s>fig[do]_[A-Za-z0-9_-]{30,})",
    ),
    token(
        "airtable-token",
        &["pat"],
        r"(?:^|[^A-Za-z0-9])(?P<s>pat[A-Za-z0-9]{14}\.[0-9a-f]{64})",
    ),
    // Formats of no vendor.
    random(
        "jwt",
        &["eyj"],
        r"(?:^|[^A-Za-z0-9_-])(?P<s>eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
        3.0,
    ),
    context(
        "private-key",
        &["-----begin"],
        r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----",
        Shape::KeyBlock,
    ),
    context(
        "url-password",
        &["://"],
        r#"[a-z][a-z0-9+.-]*://[^\s/?#:@"'<>`\[]*:(?P<s>[^\s"'<>`@]{1,256}(?:@[^\s/?#"'<>`@]{1,64}){0,2})@"#,
        Shape::UrlPassword,
    ),
    Rule {
        id: "url-token",
        keywords: &["://"],
        pattern: r#"[a-z][a-z0-9+.-]*://(?P<s>[^\s/?#:@"'<>`]{20,300})@"#,
        entropy: 3.0,
        shape: Shape::UrlToken,
    },
    context(
        "authorization",
        &["authorization"],
        r#"authorization\\*["']?\s*[:=]\s*\\*["']?(?:(?:bearer|basic|token|digest|negotiate|apikey|bot)\s+)?(?P<s>[^\s"'`$<{%\[*][^\s"'`]{7,})"#,
        Shape::Header,
    ),
    Rule {
        id: "bearer",
        keywords: &["bearer"],
        pattern: r"\bbearer\s+(?P<s>[A-Za-z0-9._~+/=-]{16,})",
        entropy: 3.0,
        shape: Shape::Header,
    },
    context(
        "cookie",
        &["cookie"],
        r#"(?:^|[\s"'`])(?:set-)?cookie\s*:\s*(?P<s>[^\r\n"'`]+)"#,
        Shape::Cookie,
    ),
    context(
        "openssl-pass",
        &["-pass"],
        r#"-pass(?:in|out)?[ \t]+pass:(?P<s>[^\s"'`]+)"#,
        Shape::Header,
    ),
    context(
        "argument",
        &["-u", "--user", "--proxy-user"],
        r#"(?:^|\s)(?:-u|--user|--proxy-user)[ \t=]+["']?[^\s:"'/]{1,100}:(?P<s>[^\s"'`]+)"#,
        Shape::UserFlag,
    ),
    // Short options that take a password with nothing between (manuals of mysql and sshpass). A port is none.
    context(
        "argument",
        &["mysql", "mariadb", "sshpass"],
        r#"(?:^|[\s"'`/;|&(])(?:mysql|mysqldump|mysqladmin|mysqlimport|mysqlshow|mariadb|mariadb-dump|mariadb-admin|sshpass)[ \t][^\n|;&]{0,300}?(?-i:-p)(?:\\*["'])?(?P<s>[^\s"'`;|&]+)"#,
        Shape::ShortPassword,
    ),
    // The value after these is found by hand: it has too many forms for a pattern.
    context(
        "assignment",
        &[
            "pass",
            "pwd",
            "secret",
            "token",
            "key",
            "credential",
            "connection",
            "signature",
            "_auth",
            "_pat",
        ],
        r#"(?P<n>[A-Za-z0-9_.-]*(?:pass|pwd|secret|token|key|credential|connection|signature|_auth|_pat)[A-Za-z0-9_.-]*)\\*["']?(?P<o>[ \t]*(?::=|=>|=|:)[ \t]*)"#,
        Shape::Assignment,
    ),
    context(
        "argument",
        &["pass", "secret", "token", "key", "credential"],
        r#"(?:^|[\s"'`,(\[])--?(?P<n>[A-Za-z][A-Za-z0-9_-]*)(?:[ \t]+|\\*["']\s*,\s*)"#,
        Shape::Flag,
    ),
];
