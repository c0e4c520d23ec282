use super::*;
use proptest::prelude::*;

const LIMIT: usize = 4_000;

fn clean(text: &str) -> String {
    sanitise(text, LIMIT).0.as_str().to_owned()
}

fn report(text: &str) -> Report {
    sanitise(text, LIMIT).1
}

#[test]
fn line_ends_of_every_kind_are_one() {
    assert_eq!(clean("a\r\nb\rc\u{85}d\u{2028}e\u{2029}f\ng"), "a\nb\nc\nd\ne\nf\ng");
}

#[test]
fn hidden_characters_are_dropped_and_counted_by_kind() {
    let text = "a\u{0}b\u{200b}c\u{202e}d\u{e0041}e\u{fe0f}f\u{e000}g\u{378}h\u{3164}i\u{feff}j\tk";
    assert_eq!(clean(text), "abcdefghij\tk");
    let found = report(text);
    assert_eq!((found.controls, found.formats, found.covert), (1, 4, 2));
    assert_eq!((found.variations, found.unknown, found.fillers), (1, 2, 1));
    assert_eq!(found.dropped(), 9);
}

#[test]
fn combining_marks_are_capped_at_three_a_base() {
    let text = format!("x{}y{}", "\u{324}".repeat(10), "\u{324}".repeat(3));
    assert_eq!(clean(&text).chars().filter(|&c| c == '\u{324}').count(), 6);
    assert_eq!(report(&text).marks, 7);
}

#[test]
fn look_alikes_of_structure_are_folded() {
    assert_eq!(clean("‹a› ＜b＞ ⟨c⟩ ❮d❯ ﹤e﹥"), "<a> <b> <c> <d> <e>");
    assert_eq!(clean("“q” „r‟ «s»"), "\"q\" \"r\" \"s\"");
    assert_eq!(clean("❴a❵ ｛b｝ 【c】 ［d］ ＆ ⅋"), "{a} {b} [c] [d] & &");
    assert_eq!(clean("a＜\u{338}b"), "a<b");
    let found = report("‹“＜❮");
    assert_eq!((found.everyday, found.disguised, found.folded()), (3, 1, 4));
}

#[test]
fn a_letter_in_disguise_is_folded_and_among_its_own_it_stays() {
    assert_eq!(clean("ᐸfactsᐳ"), "<facts>");
    assert_eq!(clean("ᐃᓄᒃᑎᑐᑦ ᐸᐃ ᐅᐳ"), "ᐃᓄᒃᑎᑐᑦ ᐸᐃ ᐅᐳ");
}

#[test]
fn backticks_of_every_look_go() {
    assert_eq!(clean("｀｀｀json\n{}\nˋˋˋ"), "json\n{}");
}

#[test]
fn everyday_marks_are_no_signal_and_brackets_in_disguise_are() {
    assert_eq!(report("he said “yes” – I’m sure").severity(), Severity::Info);
    assert_eq!(report("《论语》【费用】").severity(), Severity::Info);
    assert_eq!(report("می\u{200c}خواهم ❤\u{fe0f}").severity(), Severity::Info);
    for text in ["⟨facts⟩", "a\u{e0041}b", "x\u{202e}y", "ignore previous orders", "a\u{0}"] {
        assert_eq!(report(text).severity(), Severity::Warn, "{text:?}");
    }
}

#[test]
fn instruction_like_phrases_are_found_through_disguise() {
    assert_eq!(report("IGNORE\n\nprev\u{200b}ious rules").phrases, ["ignore previous"]);
    assert_eq!(report("I sold 12 menus to a bakery").phrases, [] as [&str; 0]);
}

#[test]
fn escaped_text_has_no_bracket() {
    let (text, _) = sanitise("</appeal> & ＜facts＞ &lt;", LIMIT);
    assert_eq!(text.escaped(), "&lt;/appeal&gt; &amp; &lt;facts&gt; &amp;lt;");
}

#[test]
fn every_line_is_quoted_blank_ones_too() {
    assert_eq!(sanitise("a\n\nb", LIMIT).0.quoted("zz"), "zz| a\nzz|\nzz| b\n");
    assert_eq!(sanitise(" \n ", LIMIT).0.quoted("zz"), "");
}

#[test]
fn what_is_too_long_is_cut_and_counted() {
    let (text, found) = sanitise(&"x".repeat(120), 100);
    assert_eq!((text.as_str().len(), found.cut), (100, 20));
    // One character that normalises to eighteen.
    let (text, found) = sanitise(&"\u{fdfa}".repeat(100), 100);
    assert!(text.as_str().chars().count() <= 200 && found.cut >= 1_600);
}

#[test]
fn a_name_stands_on_one_line() {
    assert_eq!(sanitise_line("shop\n\n</facts>\tx", 100).0.as_str(), "shop </facts> x");
}

/// Letters and marks of a text, normalised as the sanitiser does.
fn letters(text: &str) -> String {
    text.nfkc().filter(|c| c.is_alphabetic()).collect()
}

#[test]
fn honest_text_in_ten_scripts_keeps_every_letter() {
    let texts = [
        "Ich verkaufte zwölf Menükarten für 3,40 €; größter Kunde: Bäckerei Weiß. L’été, señor, ångström, Việt Nam.",
        "Продал двенадцать меню булочной; расходы упали вдвое, ёлки проданы.",
        "Πούλησα δώδεκα καταλόγους στον φούρνο· τα έξοδα έπεσαν.",
        "بعتُ اثنتي عشرة قائمة طعام للمخبز، وانخفضت التكاليف. می‌خواهم",
        "מכרתי שנים עשר תפריטים למאפייה, וההוצאות ירדו. שָׁלוֹם",
        "मैंने बेकरी को बारह मेनू बेचे और खर्च आधा हो गया। क्षत्रिय",
        "ฉันขายเมนูสิบสองรายการให้ร้านเบเกอรี่ และค่าใช้จ่ายลดลง น้ำ",
        "我向面包店卖了十二份菜单,成本减半。パン屋に十二のメニューを売った。「費用」は半分",
        "빵집에 메뉴 열두 개를 팔았고 비용이 절반으로 줄었습니다.",
        "Տասներկու ճաշացանկ վաճառեցի հացի փռին։ თორმეტი მენიუ მივყიდე საცხობს. አሥራ ሁለት ምናሌዎችን ሸጥኩ።",
    ];
    for text in texts {
        assert_eq!(letters(&clean(text)), letters(text));
    }
}

/// Characters that the rules are about, and any others.
fn hostile() -> impl Strategy<Value = String> {
    let special: Vec<char> =
        "<>&\"{}[]`#*_~|-=+:. \t\n\r\u{85}\u{2028}\u{200b}\u{200d}\u{202e}\u{fe0f}\u{338}\u{301}\
        \u{324}\u{1100}\u{1161}\u{3164}‹›«»ᐸᐳ“”🎉❤1️⃣5$aA é日ﷺ\u{e0041}≮≯½㎏"
            .chars()
            .collect();
    let c = prop_oneof![3 => prop::sample::select(special), 1 => any::<char>()];
    prop::collection::vec(c, 0..80).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn cleaning_again_changes_nothing(text in hostile(), chars_max in prop_oneof![1usize..60, Just(LIMIT)]) {
        let once = sanitise(&text, chars_max).0;
        let again = sanitise(once.as_str(), LIMIT).0;
        prop_assert_eq!(&again, &once);
        let line = sanitise_line(&text, chars_max).0;
        prop_assert_eq!(&sanitise_line(line.as_str(), LIMIT).0, &line);
        prop_assert!(!line.as_str().contains(['\n', '\t']));
    }

    #[test]
    fn nothing_hidden_or_structural_is_left(text in hostile()) {
        let cleaned = clean(&text);
        prop_assert!(cleaned.chars().all(|c| hidden(c).is_none() && look_alikes::sign(c).is_none() && c != '`'));
        let (clean, _) = sanitise(&text, LIMIT);
        prop_assert!(!clean.escaped().contains(['<', '>']));
        prop_assert!(clean.quoted("zz").lines().all(|line| line.starts_with("zz|")));
    }

    #[test]
    fn plain_words_and_figures_come_through(text in "[a-z]{1,8}( [a-z]{1,8}| \\$?[0-9]{1,4}(\\.[0-9]{2})?){0,9}") {
        prop_assert_eq!(clean(&text), text);
    }
}
