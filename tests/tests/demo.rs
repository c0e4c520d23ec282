//! `darwin demo` as its users meet it: the real binaries, real namespaces, real files.
#![expect(clippy::disallowed_methods, reason = "these tests are the ones who start the product")]

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command, Output, Stdio};
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use serde_json::Value;

    /// The folder of the binaries: the tests' own is in its `deps`.
    fn binaries() -> PathBuf {
        let own = std::env::current_exe().unwrap();
        let folder = own.parent().and_then(Path::parent).unwrap().to_owned();
        for name in ["darwin", "darwin-netd", "darwin-proxy", "image-audit", "darwin-sample-agent"] {
            assert!(folder.join(name).is_file(), "{name} is not built: run `cargo build --workspace --bins`");
        }
        folder
    }

    /// `darwin demo` with scratch folders of its own below `tmp`.
    fn demo(folder: &Path, tmp: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(folder.join("darwin"));
        command.args(args).env_clear().env("TMPDIR", tmp).stdin(Stdio::null());
        command
    }

    fn run(tmp: &Path, args: &[&str]) -> Output {
        demo(&binaries(), tmp, args).output().unwrap()
    }

    fn summary(output: &Output) -> Value {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?}\n{errors}", output.status);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn all_held(summary: &Value) {
        let checks = summary["checks"].as_array().unwrap();
        assert!(checks.len() >= 25, "{} checks", checks.len());
        let broken: Vec<&Value> = checks.iter().filter(|check| check["held"] != true).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }

    fn empty(folder: &Path) -> bool {
        fs::read_dir(folder).unwrap().next().is_none()
    }

    /// What a run must leave as it was: links, rules, named namespaces.
    fn host() -> Vec<String> {
        let say = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).output().unwrap();
            assert!(output.status.success(), "{program}");
            String::from_utf8(output.stdout).unwrap()
        };
        let links: Vec<String> = fs::read_dir("/sys/class/net")
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        let links: BTreeSet<String> = links.into_iter().collect();
        let named = fs::read_dir("/run/netns").map_or(0, Iterator::count);
        vec![
            say("/usr/sbin/nft", &["list", "ruleset"]),
            format!("{links:?}"),
            format!("{named} named namespaces"),
        ]
    }

    /// Processes with the scratch folder in their arguments: number and command line.
    fn processes_of(tmp: &Path) -> Vec<(i32, String)> {
        let tmp = tmp.to_str().unwrap();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let seen = entries.filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            Some((number, String::from_utf8_lossy(&line).replace('\0', " ")))
        });
        seen.filter(|(_, line)| line.contains(tmp)).collect()
    }

    /// For what the kernel announces to nobody here: the end of processes that are not this one's children.
    fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + limit;
        while !holds() {
            assert!(Instant::now() < end, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A demo that is under way: it has told of its third day.
    fn under_way(tmp: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut child =
            demo(&binaries(), tmp, &["demo"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("day  3") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the demo ended early");
        }
        assert!(processes_of(tmp).len() >= 5, "{:?}", processes_of(tmp));
        (child, output)
    }

    fn signal(child: &Child, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    }

    #[test]
    fn the_demo_holds_all_its_checks_twice_in_a_row_and_leaves_the_host_as_it_was() {
        let tmp = tempfile::tempdir().unwrap();
        let before = host();
        let first = summary(&run(tmp.path(), &["demo", "--json"]));
        all_held(&first);
        all_held(&summary(&run(tmp.path(), &["demo", "--json"])));
        assert_eq!(host(), before);
        assert!(empty(tmp.path()), "a scratch folder is left");
        assert_eq!(processes_of(tmp.path()), []);
        let cull = &first["dockets"]
            .as_array()
            .unwrap()
            .iter()
            .find(|docket| docket["kind"] == "cull")
            .unwrap()["cases"];
        let count = |key: &str, value: &Value| {
            cull.as_array().unwrap().iter().filter(|case| case[key] == *value).count()
        };
        assert_eq!(count("appealed", &Value::Bool(true)), 6);
        assert_eq!(count("decision", &Value::from("reprieved")), 2);
        assert_eq!(count("why", &Value::from("over_quota")), 1);
    }

    #[test]
    fn what_is_kept_is_whole_and_holds_no_secret() {
        let (tmp, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let kept = out.path().to_str().unwrap();
        let output = run(tmp.path(), &["demo", "--days", "2", "--out", kept, "--json"]);
        assert_eq!(summary(&output)["held"], true);
        let names: BTreeSet<String> = fs::read_dir(out.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        for name in
            ["journal.sqlite", "summary.json", "proxy.jsonl", "world.jsonl", "darwin.toml", "policy.toml"]
        {
            assert!(names.contains(name), "{name} of {names:?}");
        }
        assert!(!names.iter().any(|name| name.contains("secret") || name.contains(".key")), "{names:?}");
        let journal = out.path().join("journal.sqlite");
        let verified = run(tmp.path(), &["verify", "--journal", journal.to_str().unwrap()]);
        assert!(verified.status.success());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_told_before_anything_starts() {
        let tmp = tempfile::tempdir().unwrap();
        let output = run(tmp.path(), &["demo", "--days", "2", "--out", "/proc/nowhere", "--json"]);
        assert_eq!(output.status.code(), Some(4));
        assert!(String::from_utf8_lossy(&output.stderr).contains("keep the run's files in /proc/nowhere"));
        assert!(empty(tmp.path()), "a stage was built for nothing");
    }

    #[test]
    fn killing_the_driver_takes_everything_down_and_the_next_run_cleans_up() {
        let tmp = tempfile::tempdir().unwrap();
        let before = host();
        let (mut child, _output) = under_way(tmp.path());
        signal(&child, Signal::SIGKILL);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        wait_until("processes are left", Duration::from_secs(5), || processes_of(tmp.path()).is_empty());
        assert_eq!(host(), before);
        assert!(!empty(tmp.path()), "nobody could remove the scratch folder");
        assert_eq!(summary(&run(tmp.path(), &["demo", "--days", "2", "--json"]))["held"], true);
        assert!(empty(tmp.path()), "the next run removes what the dead one left");
    }

    #[test]
    fn killing_any_part_ends_the_run_by_name_and_leaves_nothing() {
        let parts = ["darwin-netd serve", "darwin-proxy serve", "exe serve", "demo-world", "demo-provider"];
        for part in parts {
            let tmp = tempfile::tempdir().unwrap();
            let (mut child, _output) = under_way(tmp.path());
            let (victim, _) =
                processes_of(tmp.path()).into_iter().find(|(_, line)| line.contains(part)).unwrap();
            kill(Pid::from_raw(victim), Signal::SIGKILL).unwrap();
            let mut errors = String::new();
            std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(4), "{part}: {errors}");
            assert!(errors.contains("cannot go on without"), "{part}: {errors}");
            wait_until(part, Duration::from_secs(5), || processes_of(tmp.path()).is_empty());
            assert!(empty(tmp.path()), "{part}: a scratch folder is left");
        }
    }

    #[test]
    fn ctrl_c_ends_in_order_and_leaves_nothing() {
        let tmp = tempfile::tempdir().unwrap();
        let (mut child, _output) = under_way(tmp.path());
        signal(&child, Signal::SIGINT);
        assert_eq!(child.wait().unwrap().code(), Some(2));
        wait_until("processes are left", Duration::from_secs(5), || processes_of(tmp.path()).is_empty());
        assert!(empty(tmp.path()), "a scratch folder is left");
    }

    #[test]
    fn killing_the_control_plane_at_fifty_points_of_the_cull_changes_no_decision() {
        let tmp = tempfile::tempdir().unwrap();
        let summary = summary(&run(tmp.path(), &["demo-crash", "--points", "50", "--seed", "1"]));
        assert_eq!(summary["undisturbed"]["verified"], true);
        assert_eq!(summary["undisturbed"]["cases"].as_array().unwrap().len(), 8, "seven idle, one starved");
        let points = summary["points"].as_array().unwrap();
        assert_eq!(points.len(), 50);
        let different: Vec<&Value> = points.iter().filter(|point| point["same"] != true).collect();
        assert!(different.is_empty(), "{different:#?}");
        // The points hit the cull itself, and not always the same step of it.
        let states: BTreeSet<&str> = points.iter().filter_map(|point| point["at_kill"].as_str()).collect();
        assert!(states.len() >= 3 && states.contains("appeals_open"), "{states:?}");
    }

    #[test]
    fn an_ordinary_user_runs_it_in_a_user_namespace_of_its_own() {
        // Where the build is may be closed to others: a copy is not.
        let (tmp, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&tmp, &programs] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        }
        for name in ["darwin", "darwin-netd", "darwin-proxy", "image-audit", "darwin-sample-agent"] {
            fs::copy(binaries().join(name), programs.path().join(name)).unwrap();
        }
        let mut command = demo(programs.path(), tmp.path(), &["demo", "--json"]);
        let output = command.uid(64_999).gid(64_999).current_dir("/").output().unwrap();
        all_held(&summary(&output));
        assert!(empty(tmp.path()), "a scratch folder is left");
    }

    #[test]
    fn usage_errors_are_told_before_anything_starts() {
        let tmp = tempfile::tempdir().unwrap();
        for args in [&["demo", "--days", "0"][..], &["demo", "--live-judge"], &["demo", "--no-such-flag"]] {
            let output = run(tmp.path(), args);
            assert_eq!(output.status.code(), Some(3), "{args:?}");
            assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
        }
        assert!(empty(tmp.path()));
    }
}
