//! Culls through the core, from birth to death, with a scripted shell.
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::get_unwrap,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::similar_names,
    reason = "test code: what is not as it should be fails the test"
)]

mod core_script;

use std::collections::BTreeMap;

use core_script::{Judge, Part, START, Shell, agent, cast, settings};
use orchestrator::core::docket::{DocketKind, DocketState, Why};
use orchestrator::core::effect::{Effect, StartEpisode};
use orchestrator::core::input::{EpisodeEnd, Input, ToolUse};
use orchestrator::core::reply::Reply;
use orchestrator::core::state::Life;
use orchestrator::core::worklog::EntryKind;
use policy::economy::Reason;
use policy::time::{DAY_MS, HOUR_MS};
use policy::{Instant, Money};

const CULL: Instant = START.plus_ms(11 * DAY_MS);
const AFTER: Instant = CULL.plus_ms(DAY_MS);

fn whole() -> Shell {
    let mut shell = Shell::new(settings(), cast());
    shell.run_until(AFTER);
    shell
}

#[test]
fn a_whole_cull_spares_the_quota_and_buries_the_rest() {
    let shell = whole();
    let culls = shell.culls();
    let [cull] = culls.as_slice() else { panic!("{culls:?}") };
    assert_eq!((cull.state, cull.eligible, cull.at_ms), (DocketState::Done, 14, CULL));
    let of =
        |reason| cull.cases.iter().filter(move |(_, case)| case.reason == reason).map(|(id, _)| id.as_str());
    assert_eq!(of(Reason::Idle).collect::<Vec<_>>(), ["idle-0", "idle-1", "idle-2", "idle-3"]);
    assert_eq!(of(Reason::Performance).collect::<Vec<_>>(), ["work-0", "work-1"]);
    let why = |name: &str| cull.cases.get(&agent(name)).unwrap().decision.unwrap().why;
    assert_eq!(why("idle-0"), Why::NoAppeal);
    assert_eq!((why("work-1"), why("work-0")), (Why::Reprieved, Why::Reprieved));
    assert_eq!((why("idle-3"), why("idle-1")), (Why::OverQuota, Why::OverQuota));
    assert_eq!(cull.quota, 2);
    assert!(matches!(shell.core.life(&agent("work-1")), Some(Life::Alive)));
    assert!(matches!(shell.core.life(&agent("idle-3")), Some(Life::Dead { .. })));
}

#[test]
fn deaths_are_published_after_removal_and_reprieved_reports_are_sealed() {
    let shell = whole();
    let of = |kind| shell.core.work_log(usize::MAX).iter().filter(move |entry| entry.kind == kind);
    let dead = |kind| of(kind).map(|entry| entry.agent.clone().unwrap().to_string()).collect::<Vec<_>>();
    assert_eq!(dead(EntryKind::DeathReport), ["idle-0", "idle-1", "idle-3"]);
    assert_eq!(dead(EntryKind::NoDeathReport), ["idle-2"]);
    assert_eq!(dead(EntryKind::Reprieve), ["work-0", "work-1"]);
    let line = &of(EntryKind::NoDeathReport).next().unwrap().text;
    assert!(line.starts_with("No death report. Income $0.00, costs $"), "{line}");
    assert_eq!(shell.core.lessons().len(), 4);
}

#[test]
fn a_reprieve_brings_a_grant_that_is_no_income_and_one_exemption() {
    let mut shell = whole();
    let figures = shell.core.figures(&agent("work-1"), shell.now).unwrap();
    assert_eq!((figures.reprieves, figures.exempt), (1, true));
    let own = figures.lifetime_profit_nano.nano();
    assert_eq!(figures.balance_nano.nano(), 10_000_000_000 + own);
    shell.run_until(CULL.plus_ms(11 * DAY_MS));
    let second = shell.culls().pop().unwrap();
    assert_eq!((second.eligible, second.cases.len()), (8, 0));
    assert!(!shell.core.figures(&agent("work-1"), shell.now).unwrap().exempt);
}

#[test]
fn every_case_gives_back_what_is_left() {
    let shell = whole();
    for (account, balance) in shell.core.accounts() {
        if account.starts_with("case/") || account.starts_with("agent/idle") {
            assert_eq!(balance.posted_nano, Money::ZERO, "{account}");
        }
        assert_eq!(balance.held_nano, Money::ZERO, "{account}");
    }
}

#[test]
fn condemned_agents_have_reading_tools_their_two_texts_and_the_empty_profile() {
    let mut shell = Shell::new(settings(), cast());
    shell.run_until(CULL);
    assert!(shell.core.tools(&agent("idle-1")).contains(&"write_daily_report"));
    shell.forget_effects();
    shell.submit(Input::Tick);
    let tools = shell.core.tools(&agent("idle-1"));
    assert!(tools.contains(&"submit_appeal") && tools.contains(&"submit_death_report"));
    assert!(tools.contains(&"read_work_log") && !tools.contains(&"write_daily_report"));
    let open = shell.core.open_effects();
    let last = open.iter().find_map(|effect| match effect {
        Effect::StartEpisode(start) if start.last => Some(start),
        _ => None,
    });
    let last = last.unwrap();
    assert_eq!(last.profile, shell.core.settings().lives.condemned_profile);
    assert_eq!(last.spend_limit_nano, Money::from_nano(250_000_000));
    assert!(last.wake.contains("submit_appeal") && last.wake.contains("next 10 days"), "{}", last.wake);
}

#[test]
fn no_appeal_counts_from_the_deadline_on() {
    let mut shell = Shell::new(settings(), cast());
    shell.run_until(CULL);
    shell.forget_effects();
    shell.submit(Input::Tick);
    let id = agent("idle-1");
    let episode = shell.core.episode_of(&id).unwrap();
    let tool = |text: &str| Input::ToolUsed {
        agent: id.clone(),
        episode,
        tool: ToolUse::SubmitAppeal { text: text.to_owned() },
    };
    assert!(matches!(shell.submit(tool("first")), Reply::Tool { .. }));
    assert!(matches!(shell.submit(tool(" \u{200b}\u{3164} ")), Reply::Refused(_)));
    assert!(matches!(shell.submit(tool(&"x".repeat(2_001))), Reply::Refused(_)));
    assert!(matches!(shell.submit(tool(&"x".repeat(2_000))), Reply::Tool { .. }));
    shell.now = CULL.plus_ms(6 * HOUR_MS - 1);
    assert!(matches!(shell.submit(tool("last")), Reply::Tool { .. }));
    shell.now = CULL.plus_ms(6 * HOUR_MS);
    assert!(matches!(shell.submit(tool("late")), Reply::Refused(_)));
    let cull = shell.culls().pop().unwrap();
    let case = cull.cases.get(&id).unwrap();
    assert_eq!((case.appeal(), case.appeals.len()), (Some("last"), 3));
}

#[test]
fn an_outage_kills_nobody_and_waits_for_an_admin_after_a_day() {
    let mut shell = Shell::new(settings(), cast());
    shell.judge = Judge::Away;
    shell.run_until(CULL.plus_ms(5 * DAY_MS));
    let cull = shell.culls().pop().unwrap();
    assert_eq!((cull.state, cull.waits_for_admin), (DocketState::Judging, true));
    assert!(shell.asked > 20 && shell.asked < 60, "{}", shell.asked);
    assert!(matches!(shell.core.life(&agent("idle-1")), Some(Life::Condemned { .. })));
    shell.judge = Judge::Honest;
    let retry = Input::RetryJudge { docket: cull.id, actor: "ann".to_owned() };
    assert_eq!(shell.submit(retry), Reply::Done);
    shell.run_until(CULL.plus_ms(5 * DAY_MS + 1));
    assert_eq!(shell.culls().pop().unwrap().state, DocketState::Done);
}

#[test]
fn unreadable_judgements_are_asked_again_once_alone() {
    let mut shell = Shell::new(settings(), cast());
    shell.judge = Judge::HonestAlone;
    shell.run_until(AFTER);
    assert_eq!(shell.asked, 1 + 5);
    assert_eq!(shell.decisions(), whole().decisions());
}

#[test]
fn a_refusing_judge_is_no_judge_and_nobody_is_reprieved() {
    let mut shell = Shell::new(settings(), cast());
    shell.judge = Judge::Stops("refusal".to_owned());
    shell.run_until(AFTER);
    let cull = shell.culls().pop().unwrap();
    assert_eq!(cull.state, DocketState::Done);
    assert!(cull.cases.values().all(|case| !case.is_reprieved()));
    let case = cull.cases.get(&agent("work-1")).unwrap();
    assert_eq!(case.reasoning(), Some("unreadable judgement"));
    assert!(case.scores[&1].unreadable.as_deref().unwrap().contains("refused"));
}

#[test]
fn without_a_judge_every_condemned_agent_goes_to_its_death_report() {
    let mut settings = settings();
    settings.judge.enabled = false;
    let mut shell = Shell::new(settings, cast());
    shell.run_until(AFTER);
    assert_eq!(shell.asked, 0);
    let cull = shell.culls().pop().unwrap();
    assert!(
        cull.cases.values().all(|case| case.decision.unwrap().why == Why::NoJudge && case.appeals.is_empty())
    );
    assert_eq!(shell.core.lessons().len(), 6);
}

#[test]
fn an_admin_may_overturn_within_the_hold_window_and_not_after_it() {
    let mut settings = settings();
    settings.schedule.hold_window_ms = 2 * HOUR_MS;
    let mut shell = Shell::new(settings, cast());
    shell.run_until(CULL.plus_ms(HOUR_MS));
    let cull = shell.culls().pop().unwrap();
    assert_eq!(cull.state, DocketState::Held);
    let over = |name: &str, reprieve| Input::Override {
        docket: cull.id,
        agent: agent(name),
        reprieve,
        reason: "seen".to_owned(),
        actor: "ann".to_owned(),
    };
    assert_eq!(shell.submit(over("idle-0", true)), Reply::Done);
    assert_eq!(shell.submit(over("work-1", false)), Reply::Done);
    assert_eq!(shell.submit(over("idle-2", true)), Reply::Done);
    shell.run_until(AFTER);
    assert!(matches!(shell.submit(over("idle-0", false)), Reply::Refused(_)));
    let cull = shell.culls().pop().unwrap();
    let lives: Vec<_> =
        cull.cases.iter().filter(|(_, case)| case.is_reprieved()).map(|(id, _)| id.as_str()).collect();
    assert_eq!(lives, ["idle-0", "idle-2", "work-0"]);
    let by_code = cull.cases.get(&agent("work-1")).unwrap();
    assert!(by_code.decision.unwrap().reprieved && by_code.overturned.is_some());
    assert!(matches!(shell.core.life(&agent("work-1")), Some(Life::Dead { .. })));
}

#[test]
fn a_crash_at_any_row_of_a_cull_ends_the_same() {
    let undisturbed = whole();
    let first = undisturbed.rows.iter().position(|(at, _)| *at >= CULL).unwrap() - 20;
    assert!(undisturbed.rows.len() > first + 60, "{}", undisturbed.rows.len());
    for cut in first..=undisturbed.rows.len() {
        let mut again = undisturbed.crashed(cut);
        again.run_until(AFTER);
        assert_eq!(again.decisions(), undisturbed.decisions(), "cut after row {cut}");
        assert_eq!(again.treasury(), undisturbed.treasury(), "cut after row {cut}");
        assert_eq!(again.core.accounts(), undisturbed.core.accounts(), "cut after row {cut}");
    }
}

#[test]
fn the_same_rows_give_the_same_state() {
    let shell = whole();
    let again = shell.crashed(shell.rows.len());
    assert_eq!(again.core.state_hash().unwrap(), shell.core.state_hash().unwrap());
}

#[test]
fn a_starving_agent_has_a_docket_of_its_own() {
    let mut settings = settings();
    settings.lives.episode_spend_nano = Money::from_nano(100_000_000_000);
    settings.money.grant_nano = Money::from_nano(3_000_000);
    settings.lives.wake_every_ms = HOUR_MS;
    settings.models.prompt_tokens_min = 2_000;
    let part = Part { calls: 3, appeal: Some("promise 90".to_owned()), ..Part::default() };
    let idler = Part { appeal: None, ..Part::default() };
    let cast = BTreeMap::from([("poor".to_owned(), part), ("still".to_owned(), idler)]);
    let mut shell = Shell::new(settings, cast);
    shell.run_until(START.plus_ms(3 * DAY_MS));
    let dockets = shell.dockets();
    let first = dockets.first().unwrap();
    assert_eq!((first.kind, first.cases.len()), (DocketKind::Starvation, 1));
    let case = first.cases.get(&agent("poor")).unwrap();
    assert_eq!(case.reason, Reason::Starved);
    assert!(case.is_reprieved(), "a lone appellant at 90 lives");
    assert!(matches!(shell.core.life(&agent("still")), Some(Life::Alive)));
}

#[test]
fn internal_income_buys_no_life_and_is_flagged() {
    let mut cast = cast();
    for payer in ["idle-2", "name of work-5"] {
        let washer = Part { cents: 20, payer: Some(payer.to_owned()), ..Part::default() };
        cast.insert("idle-3".to_owned(), washer);
        let mut shell = Shell::new(settings(), cast.clone());
        shell.run_until(AFTER);
        let cull = shell.culls().pop().unwrap();
        let case = cull.cases.get(&agent("idle-3")).unwrap();
        assert_eq!((case.reason, case.facts.period_income_nano), (Reason::Idle, Money::ZERO));
        assert!(case.facts.open_flags.iter().any(|flag| flag.starts_with("internal_income")));
    }
}

#[test]
fn every_midnight_every_living_agent_has_a_report() {
    let shell = whole();
    for day in 1..=11 {
        let at = START.plus_ms(day * DAY_MS);
        let entries = shell.core.work_log(usize::MAX).iter().filter(|entry| {
            entry.at_ms == at && matches!(entry.kind, EntryKind::Report | EntryKind::NoReport)
        });
        let mut entries: Vec<_> = entries.collect();
        entries.dedup_by_key(|entry| entry.agent.clone());
        assert_eq!(entries.len(), 14, "{at}");
        let line = entries.iter().find(|entry| entry.kind == EntryKind::NoReport).unwrap();
        assert!(line.text.starts_with("No report. Income $0.00, costs $0."), "{}", line.text);
        assert!(
            line.text.contains("; lifetime -$0.") && line.text.contains("; balance $4.9"),
            "{}",
            line.text
        );
    }
}

#[test]
fn whoever_would_be_condemned_is_warned_two_days_before() {
    let mut shell = Shell::new(settings(), cast());
    let warned = |shell: &Shell| shell.announced.iter().filter(|line| line.contains("is warned")).count();
    shell.run_until(CULL.plus_ms(-48 * HOUR_MS));
    assert_eq!(warned(&shell), 0);
    shell.run_until(CULL.plus_ms(-48 * HOUR_MS + 1));
    assert_eq!(warned(&shell), 6);
    shell.run_until(CULL);
    // Two fell below later, and were told then; nobody is told twice.
    assert_eq!(warned(&shell), 8);
}

#[test]
fn a_cull_at_most_a_day_late_runs_and_a_later_one_is_postponed() {
    for (late, runs) in [(DAY_MS, true), (DAY_MS + 1, false)] {
        let mut shell = Shell::new(settings(), cast());
        shell.run_until(CULL);
        shell.now = CULL.plus_ms(late);
        shell.submit(Input::Tick);
        assert_eq!(shell.culls().len(), usize::from(runs), "{late}");
        if runs {
            assert_eq!(shell.culls()[0].condemned_ms, Some(shell.now));
            assert_eq!(shell.core.next_cull(), CULL.plus_ms(10 * DAY_MS));
        } else {
            let next = shell.core.dockets().find(|docket| docket.state == DocketState::Postponed).unwrap();
            assert_eq!(next.at_ms, CULL.plus_ms(4 * DAY_MS));
            assert_eq!(shell.core.next_cull(), CULL.plus_ms(4 * DAY_MS));
        }
    }
}

#[test]
fn of_several_missed_culls_only_the_latest_counts() {
    let mut shell = Shell::new(settings(), cast());
    shell.run_until(CULL);
    shell.now = CULL.plus_ms(20 * DAY_MS + HOUR_MS);
    shell.submit(Input::Tick);
    let states: Vec<_> = shell.core.dockets().map(|docket| docket.state).collect();
    assert_eq!(states, [DocketState::Skipped, DocketState::Skipped, DocketState::Postponed]);
    let note = &shell.core.dockets().last().unwrap().note;
    assert!(note.contains("warned"), "{note}");
}

#[test]
fn a_treasury_that_cannot_pay_postpones_the_cull() {
    let mut settings = settings();
    settings.money.treasury_nano = Money::from_nano(75_000_000_000);
    let mut shell = Shell::new(settings, cast());
    shell.run_until(AFTER);
    assert!(shell.culls().is_empty());
    let next = shell.core.dockets().next().unwrap();
    assert!(next.note.contains("treasury"), "{}", next.note);
    assert_eq!(next.at_ms, CULL.plus_ms(2 * DAY_MS));
}

/// At the cull, with the last episodes asked for and none performed.
fn condemned() -> Shell {
    let mut shell = Shell::new(settings(), cast());
    shell.run_until(CULL);
    shell.forget_effects();
    shell.submit(Input::Tick);
    shell.forget_effects();
    shell
}

fn start_of(shell: &Shell, name: &str) -> Option<StartEpisode> {
    shell.core.open_effects().into_iter().find_map(|effect| match effect {
        Effect::StartEpisode(start) if start.agent == agent(name) => Some(start),
        _ => None,
    })
}

fn end(shell: &mut Shell, name: &str, end: EpisodeEnd) {
    let episode = shell.core.episode_of(&agent(name)).unwrap();
    shell.submit(Input::EpisodeStarted { episode });
    shell.submit(Input::EpisodeEnded { episode, end });
}

#[test]
fn a_condemned_agents_run_that_was_lost_is_made_again_and_its_appeal_counts() {
    for lost in [EpisodeEnd::Stopped, EpisodeEnd::Failed { why: "netd is gone".to_owned() }] {
        let mut shell = condemned();
        let first = start_of(&shell, "idle-3").unwrap();
        end(&mut shell, "idle-3", lost);
        assert_eq!(shell.core.episode_of(&agent("idle-3")), None);
        shell.run_until(CULL.plus_ms(HOUR_MS));
        let cull = shell.culls().pop().unwrap();
        let case = cull.cases.get(&agent("idle-3")).unwrap();
        assert!(case.episode.unwrap() > first.episode);
        assert_eq!(case.appeal(), Some("I will earn. promise 60"));
        let lines = shell.announced.iter().filter(|line| line.contains("of idle-3 ")).count();
        assert!(lines >= 1, "{:?}", shell.announced);
    }
}

#[test]
fn a_last_episode_that_the_agent_ends_itself_is_the_only_one() {
    let mut shell = condemned();
    let first = start_of(&shell, "idle-3").unwrap();
    end(&mut shell, "idle-3", EpisodeEnd::Exit { code: 1 });
    shell.run_until(AFTER);
    let cull = shell.culls().pop().unwrap();
    let case = cull.cases.get(&agent("idle-3")).unwrap();
    assert_eq!((case.episode, case.appeal()), (Some(first.episode), None));
    assert_eq!(case.decision.unwrap().why, Why::NoAppeal);
}

#[test]
fn an_ordinary_run_that_was_lost_is_made_again_with_what_it_was_told_and_waits_longer_each_time() {
    let mut shell = Shell::new(settings(), cast());
    shell.forget_effects();
    let mut waits = Vec::new();
    for _ in 0..3 {
        let start = start_of(&shell, "work-1").unwrap();
        assert!(start.wake.contains("You were born."), "{}", start.wake);
        let lost_ms = shell.now;
        end(&mut shell, "work-1", EpisodeEnd::Stopped);
        while shell.core.episode_of(&agent("work-1")).is_none() {
            shell.now = shell.core.next_due().unwrap();
            shell.submit(Input::Tick);
        }
        shell.forget_effects();
        waits.push(shell.now.since_ms(lost_ms));
    }
    assert_eq!(waits, [60_000, 120_000, 240_000]);
}

#[test]
fn an_ordinary_run_that_ended_or_was_stopped_is_not_made_again() {
    for pause in [false, true] {
        let mut shell = Shell::new(settings(), cast());
        shell.forget_effects();
        let episode = shell.core.episode_of(&agent("work-1")).unwrap();
        if pause {
            let (reason, actor) = (String::new(), "ann".to_owned());
            shell.submit(Input::Pause { agent: agent("work-1"), reason, actor });
            end(&mut shell, "work-1", EpisodeEnd::Stopped);
            let (reason, actor) = (String::new(), "ann".to_owned());
            shell.submit(Input::Resume { agent: agent("work-1"), reason, actor });
        } else {
            end(&mut shell, "work-1", EpisodeEnd::Exit { code: 0 });
        }
        shell.now = START.plus_ms(10 * 60_000);
        shell.submit(Input::Tick);
        assert_eq!(shell.core.episode_of(&agent("work-1")), None, "after {episode}");
    }
}

#[test]
fn sixteen_versions_of_a_text_are_kept_and_a_further_one_is_refused_unjournalled() {
    let mut shell = condemned();
    let appeal = |text: &str| ToolUse::SubmitAppeal { text: text.to_owned() };
    let episode = shell.core.episode_of(&agent("idle-1")).unwrap();
    let used = |tool| Input::ToolUsed { agent: agent("idle-1"), episode, tool };
    for number in 1..=16 {
        assert!(matches!(shell.submit(used(appeal(&format!("version {number}")))), Reply::Tool { .. }));
    }
    let rows = shell.rows.len();
    assert!(matches!(shell.submit(used(appeal("version 17"))), Reply::Refused(_)));
    assert_eq!(shell.rows.len(), rows);
    let cull = shell.culls().pop().unwrap();
    assert_eq!(cull.cases.get(&agent("idle-1")).unwrap().appeal(), Some("version 16"));
    let report = ToolUse::SubmitDeathReport { text: "it is over".to_owned() };
    assert!(matches!(shell.submit(used(report)), Reply::Tool { .. }));
}

#[test]
fn a_day_has_sixteen_versions_of_its_report_and_the_next_day_as_many() {
    let mut shell = Shell::new(settings(), cast());
    shell.forget_effects();
    let episode = shell.core.episode_of(&agent("work-1")).unwrap();
    let report = |number: u32| Input::ToolUsed {
        agent: agent("work-1"),
        episode,
        tool: ToolUse::WriteDailyReport { text: format!("version {number}") },
    };
    for number in 1..=16 {
        assert!(matches!(shell.submit(report(number)), Reply::Tool { .. }));
    }
    assert!(matches!(shell.submit(report(17)), Reply::Refused(_)));
    shell.now = START.plus_ms(DAY_MS);
    assert!(matches!(shell.submit(report(18)), Reply::Tool { .. }));
}

#[test]
fn a_judge_that_answers_nothing_is_paid_its_bound_and_one_that_was_not_reached_is_not() {
    for (judge, paid) in [(Judge::Away, false), (Judge::Mute, true)] {
        let mut shell = Shell::new(settings(), cast());
        shell.run_until(CULL);
        shell.judge = judge;
        let of_judge = |shell: &Shell| {
            let outcomes = shell.core.unknown_outcomes().filter(|(call, _)| call.starts_with("judge/"));
            outcomes.map(|(_, bound)| bound.nano()).collect::<Vec<_>>()
        };
        shell.run_until(CULL.plus_ms(1));
        let bounds = of_judge(&shell);
        assert_eq!(!bounds.is_empty(), paid);
        let before = shell.treasury();
        shell.run_until(CULL.plus_ms(60_001));
        let more = of_judge(&shell).iter().sum::<i64>() - bounds.iter().sum::<i64>();
        assert_eq!((before - shell.treasury(), more > 0), (more, paid));
        shell.judge = Judge::Honest;
        shell.run_until(AFTER);
        assert_eq!(shell.culls().pop().unwrap().state, DocketState::Done);
    }
}

#[test]
fn a_docket_shows_the_death_reports_of_the_dead_alone_and_no_request_to_the_judge() {
    let shown = |shell: &Shell| {
        let views: Vec<_> = shell.core.docket_views().collect();
        serde_json::to_string(&views).unwrap()
    };
    let mut shell = Shell::new(settings(), cast());
    shell.judge = Judge::Away;
    shell.run_until(CULL.plus_ms(7 * HOUR_MS));
    let judging = shown(&shell);
    assert!(judging.contains("\"judging\"") && judging.contains("\"unanswered\":1"), "{judging}");
    assert!(
        !judging.contains("death_report") && !judging.contains("\"system\"") && !judging.contains("sigil")
    );
    let shell = whole();
    let done = shown(&shell);
    assert!(done.contains("I, idle 1, earned nothing."));
    let views = serde_json::from_str::<serde_json::Value>(&done).unwrap();
    let cases = &views[0]["cases"];
    assert!(cases["idle-1"]["death_reports"].is_array());
    assert!(cases["work-1"].get("death_reports").is_none() && cases["work-1"]["appeals"].is_array());
}

#[test]
fn names_of_the_platforms_own_parts_are_no_agents() {
    let mut shell = Shell::new(settings(), BTreeMap::new());
    let mut create = |name: &str| {
        let input = Input::CreateAgent {
            key: name.to_owned(),
            agent: agent(name),
            name: "Ada".to_owned(),
            image: "sample".to_owned(),
            brief: String::new(),
        };
        shell.submit(input)
    };
    for name in ["darwin-proxy", "selftest", "listen-1", "listen-"] {
        assert!(matches!(create(name), Reply::Refused(_)), "{name}");
    }
    for name in ["darwin", "selftest-1", "listener", "listen"] {
        assert_eq!(create(name), Reply::Created { agent: agent(name) });
    }
}

#[test]
fn a_docket_closes_when_every_last_episode_is_over_and_not_before() {
    let names = ["idle-0", "idle-1", "idle-2", "idle-3", "work-0"];
    let mut shell = condemned();
    for name in names {
        end(&mut shell, name, EpisodeEnd::Exit { code: 0 });
    }
    assert_eq!(shell.culls().pop().unwrap().state, DocketState::AppealsOpen);
    let mut other = shell.clone();
    end(&mut shell, "work-1", EpisodeEnd::Exit { code: 0 });
    assert_eq!(shell.culls().pop().unwrap().state, DocketState::Executing);
    end(&mut other, "work-1", EpisodeEnd::Stopped);
    assert_eq!(other.culls().pop().unwrap().state, DocketState::AppealsOpen);
}

#[test]
fn a_last_episode_that_does_not_end_has_until_the_deadline() {
    let mut shell = condemned();
    shell.run_until(CULL.plus_ms(6 * HOUR_MS));
    assert_eq!(shell.culls().pop().unwrap().state, DocketState::AppealsOpen);
    shell.run_until(CULL.plus_ms(6 * HOUR_MS + 1));
    assert!(shell.culls().pop().unwrap().state > DocketState::AppealsOpen);
}
