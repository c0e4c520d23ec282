use super::*;

fn places(mistakes: &[Mistake]) -> Vec<(usize, usize)> {
    mistakes.iter().map(|mistake| (mistake.line, mistake.column)).collect()
}

#[test]
fn an_empty_file_is_the_defaults() {
    assert_eq!(Config::parse(""), Ok(Config::default()));
}

#[test]
fn every_key_of_the_configuration_is_read() {
    let config = Config::parse(
        "log = \"/l\"\nspool = \"/s\"\nnetd = \"/n\"\npolicy = \"/p\"\nupstream_proxy = \"\"\n[resolver]\n\
         servers = [\"127.0.0.1:53\", \"[::1]:5353\"]\n[clocks]\nhead_s = 1\nlookup_s = 2\ndial_s = 3\nhello_s = 4\n\
         half_closed_s = 5\ndrain_s = 6\n[caps]\nunjudged = 7\ntunnels = 8\n",
    )
    .unwrap();
    assert_eq!(config.log, LogTarget::File("/l".into()));
    assert_eq!(config.resolvers.len(), 2);
    assert_eq!((config.clocks.head.as_secs(), config.clocks.drain.as_secs()), (1, 6));
    assert_eq!((config.caps.unjudged, config.caps.tunnels), (7, 8));
}

#[test]
fn every_mistake_of_the_configuration_is_told_with_its_place() {
    let text = "log = 7\nnetd = \"run/x\"\nwhat = 1\nmetrics = \"unix:/m\"\n[resolver]\nservers = [\"127.0.0.1:53\", \"localhost\"]\n\
                [clocks]\nhead_s = 0\n  dial_s = \"x\"\n";
    let mistakes = Config::parse(text).unwrap_err();
    assert_eq!(
        places(&mistakes),
        [(1, 7), (2, 8), (3, 1), (4, 11), (6, 28), (8, 10), (9, 12)],
        "{mistakes:#?}"
    );
}

#[test]
fn every_mistake_of_a_policy_is_told_with_its_place() {
    let text = "[profiles.a]\nmode = \"open\"\n[[profiles.a.rules]]\nhost = \"x:443\"\naction = \"allow\"\nports = [443, 0]\n\
                [[profiles.a.rules]]\nhost = \"y.example\"\nwhy = 1\n[profiles.B]\n[profiles.c]\nreport_only = 1\n";
    let mistakes = Policies::parse(text).unwrap_err();
    assert_eq!(
        places(&mistakes),
        [(2, 8), (4, 8), (6, 15), (7, 1), (9, 1), (10, 11), (12, 15)],
        "{mistakes:#?}"
    );
}

#[test]
fn broken_toml_is_told_with_its_place() {
    let mistakes = Policies::parse("[profiles.a]\nmode = \n").unwrap_err();
    assert_eq!(mistakes[0].line, 2);
}

#[test]
fn a_policy_without_profiles_does_not_load() {
    assert_eq!(Policies::parse("").unwrap_err().len(), 1);
    assert!(Policies::parse("[profiles.empty]\n").unwrap().profiles.len() == 1);
}

#[test]
fn the_revision_follows_the_text() {
    let one = Policies::parse("[profiles.a]\n").unwrap();
    let other = Policies::parse("[profiles.b]\n").unwrap();
    assert_ne!(one.revision, other.revision);
    assert_eq!(one.revision.len(), 12);
}

#[test]
fn the_packaged_examples_load() {
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging");
    let config = Config::load(&packaging.join("proxy.toml")).unwrap();
    assert_eq!(config.clocks, Config::default().clocks);
    assert_eq!(config.caps, Config::default().caps);
    assert_eq!(Policies::load(&packaging.join("policy.toml")).unwrap().profiles.len(), 2);
}
