//! Which of the platform's tools work for an agent (G10, E9, E17, E19, E27).

use super::cull::LifeState;

/// Tools that only read.
const READING: [&str; 4] = ["my_figures", "read_work_log", "read_digest", "read_lessons"];

/// The names of the tools that work in `state`: none for the dead. A condemned agent reads, and has the texts of its
/// last episode; without a judge there is no appeal (E19).
pub fn tools(state: LifeState, has_judge: bool, may_reproduce: bool) -> Vec<&'static str> {
    let more: &[&str] = match (state, has_judge, may_reproduce) {
        (LifeState::Dead, _, _) => return Vec::new(),
        (LifeState::Alive, _, false) => &["write_daily_report"],
        (LifeState::Alive, _, true) => &["write_daily_report", "reproduce"],
        (LifeState::Condemned, true, _) => &["submit_appeal", "submit_death_report"],
        (LifeState::Condemned, false, _) => &["submit_death_report"],
    };
    READING.iter().chain(more).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_its_own_writing_tools() {
        let writing = |state, has_judge, may_reproduce| {
            let all = tools(state, has_judge, may_reproduce);
            let reads = all.iter().filter(|name| READING.contains(name)).count();
            (reads, all.into_iter().filter(|name| !READING.contains(name)).collect::<Vec<_>>())
        };
        for judge in [false, true] {
            assert_eq!(writing(LifeState::Alive, judge, false), (4, vec!["write_daily_report"]));
            assert_eq!(writing(LifeState::Alive, judge, true), (4, vec!["write_daily_report", "reproduce"]));
            assert_eq!(writing(LifeState::Dead, judge, true), (0, vec![]));
        }
        for child in [false, true] {
            let both = vec!["submit_appeal", "submit_death_report"];
            assert_eq!(writing(LifeState::Condemned, true, child), (4, both));
            assert_eq!(writing(LifeState::Condemned, false, child), (4, vec!["submit_death_report"]));
        }
    }
}
