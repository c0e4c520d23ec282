use super::*;

const WHOLE: &str = r#"
journal = "/var/lib/darwin/journal.sqlite"
state_dir = "/var/lib/darwin"
run_dir = "/run/darwin"
spools = ["/var/lib/darwin/signals/netd.jsonl"]

[netd]
socket = "/run/darwin/netd.sock"

[api]
listen = ["unix:/run/darwin/api.sock", "127.0.0.1:8080"]

[provider]
base_url = "https://api.anthropic.com"
api_key_env = "KEY"

[judge]
timeout_s = 61

[digest]
base_url = "https://elsewhere.example"

[images.sample]
rootfs = "/usr"
command = ["/agent", "--busy"]

[clock]
accelerated = { start_ms = 0, busy_rate = 60, idle_rate = 20000 }
"#;

fn with_key(name: &str) -> Option<String> {
    (name == "KEY").then(|| "sk-1".to_owned())
}

fn mistakes(text: &str) -> Vec<String> {
    let found = Config::parse(text, &with_key).expect_err("it should be wrong");
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_file_is_read() {
    let config = Config::parse(WHOLE, &with_key).unwrap();
    assert_eq!(config.api.listen.len(), 2);
    assert_eq!(config.judge.timeout, Duration::from_secs(61));
    assert_eq!(config.judge.api_key, config.provider.api_key);
    assert_eq!(config.images["sample"].command, ["/agent", "--busy"]);
    assert!(matches!(config.clock, ClockMode::Accelerated(Acceleration { busy_rate: 60, .. })));
}

#[test]
fn the_providers_key_goes_to_no_other_host() {
    let config = Config::parse(WHOLE, &with_key).unwrap();
    assert_eq!(config.digest.base.host(), Some("elsewhere.example"));
    assert_eq!(config.digest.api_key, None);
}

#[test]
fn all_mistakes_are_told_at_once_with_their_places() {
    let text = WHOLE
        .replace("state_dir = \"/var", "state_dir = \"var")
        .replace("[judge]", "[judge]\ncolour = 1")
        .replace("timeout_s = 61", "timeout_s = \"long\"")
        .replace("127.0.0.1:8080", "0.0.0.0:8080")
        .replace("\"KEY\"", "\"NO_KEY\"")
        .replace("\"/agent\"", "\"agent\"");
    let places: Vec<String> =
        mistakes(&text).iter().map(|line| line.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(places, ["3:13", "11:40", "15:15", "18:1", "19:13", "26:11"]);
}

#[test]
fn an_empty_file_names_everything_that_is_missing() {
    let found = mistakes("").join("\n");
    for key in ["journal", "state_dir", "run_dir", "netd.socket", "provider.base_url"] {
        assert!(found.contains(key), "{key} in {found}");
    }
}

#[test]
fn broken_syntax_has_a_place() {
    assert_eq!(mistakes("journal = \n[x\n").first().map(|line| line.starts_with("1:")), Some(true));
}

#[test]
fn a_provider_without_tls_is_refused() {
    let found = mistakes(&WHOLE.replace("https://api.anthropic.com", "http://api.anthropic.com"));
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_slower_idle_clock_is_refused() {
    assert_eq!(mistakes(&WHOLE.replace("idle_rate = 20000", "idle_rate = 59")).len(), 1);
}

#[test]
fn secrets_are_never_shown() {
    let config = Config::parse(WHOLE, &with_key).unwrap();
    assert!(!format!("{config:?}").contains("sk-1"));
}

#[test]
fn webhook_secrets_have_24_to_64_bytes() {
    assert!(WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_some());
    assert!(WebhookSecret::parse("whsec_c2hvcnQ=").is_none());
    assert!(WebhookSecret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_none());
}

#[test]
fn the_example_file_lacks_nothing_but_the_secret_and_the_image_that_it_names() {
    let text = include_str!("../../../packaging/darwin.toml");
    let found = Config::parse(text, &|_| Some("sk-1".to_owned())).map(drop).unwrap_err();
    let whats: Vec<&str> = found.iter().map(|mistake| mistake.what.as_str()).collect();
    assert!(
        whats.len() == 2 && whats[0].contains("secrets") && whats[1].contains("no such folder"),
        "{whats:?}"
    );
}

#[test]
fn every_mistake_of_the_economy_has_its_own_place() {
    let text = format!(
        "{WHOLE}[economy.quota]\nshare_bps = 0\npasses = 6\n[economy.appeal]\nwindow_ms = 0\n[economy.judge]\nmodel = \"x\"\n"
    );
    let lines = mistakes(&text);
    let places: Vec<&str> = lines.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, ["30:13", "31:10", "33:13", "35:9"], "{lines:?}");
}

#[test]
fn a_mistake_about_a_default_is_told_at_its_table() {
    // Only the warning is given; what contradicts it is the default of another key.
    let text = format!("{WHOLE}[economy.schedule]\nwarning_ms = 1\n");
    let lines = mistakes(&text);
    assert!(lines.len() == 1 && lines[0].starts_with("29:1: economy.schedule.warning_least_ms"), "{lines:?}");
}

#[test]
fn a_key_of_another_type_is_told_once() {
    let lines = mistakes(&WHOLE.replace("state_dir = \"/var/lib/darwin\"", "state_dir = 5"));
    assert!(lines.len() == 1 && lines[0].starts_with("3:13"), "{lines:?}");
}

#[test]
fn numbers_that_are_nobodys_and_times_after_all_calendars_are_refused() {
    let text = WHOLE
        .replace("[api]", "[api]\noperators = [1000, 4294967295]")
        .replace("start_ms = 0", "start_ms = 9223372036854775807");
    assert_eq!(mistakes(&text).len(), 2);
    assert_eq!(
        Config::parse(&WHOLE.replace("[api]", "[api]\noperators = [1000]"), &with_key).unwrap().api.operators,
        [1000]
    );
}

#[test]
fn who_operates_needs_neither_the_key_nor_the_secrets() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = WHOLE.replace("[images.sample]", "[webhooks]\nsecret_file = \"/nowhere\"\n[images.sample]");
    std::fs::write(file.path(), &text).unwrap();
    assert!(Config::load(file.path()).is_err());
    assert_eq!(Config::api_socket(file.path()).unwrap(), Some("/run/darwin/api.sock".into()));
    std::fs::write(file.path(), text.replace("unix:/run", "unix:run")).unwrap();
    assert!(Config::api_socket(file.path()).is_err());
}

#[test]
fn an_image_without_its_folder_is_told_before_anything_starts() {
    let lines = mistakes(&WHOLE.replace("rootfs = \"/usr\"", "rootfs = \"/nowhere\""));
    assert!(lines.len() == 1 && lines[0].starts_with("24:10: there is no such folder"), "{lines:?}");
}
