//! Characters that look like the nine that mark structure: `< > & " { } [ ]` and the backtick (J6).
//!
//! After NFKC, which already folds the full-width and small forms. From the Unicode security data for
//! confusables, and by eye for ornaments and brackets that it leaves out. The table stands in `docs/judge.md`.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// What `c` looks like, if it is no letter. Letters are for [`letter`].
pub(super) const fn sign(c: char) -> Option<char> {
    Some(match c {
        '‹' | '˂' | '〈' | '❮' | '⟨' | '❰' | '⧼' | '≪' | '≮' | '⋖' | '⪡' | '⟪' | '《' | '⦑' | '𝈶' | '⋘' => {
            '<'
        }
        '›' | '˃' | '〉' | '❯' | '⟩' | '❱' | '⧽' | '≫' | '≯' | '⋗' | '⪢' | '⟫' | '》' | '⦒' | '𝈷' | '⋙' => {
            '>'
        }
        '⅋' | '🙰' | '🙱' | '🙲' | '🙳' | '🙴' | '🙵' => '&',
        '“' | '”' | '„' | '‟' | '〃' | '״' | '❝' | '❞' | '❠' | '〝' | '〞' | '〟' | '«' | '»' | '🙶' | '🙷'
        | '🙸' => '"',
        '❴' | '⦃' | '𝄔' | '⎨' => '{',
        '❵' | '⦄' | '⎬' => '}',
        '⁅' | '❲' | '⟦' | '〔' | '【' | '〖' | '〘' | '〚' | '⦋' | '⦍' | '⦏' | '⦗' | '⟬' | '⎡' | '⎣' => {
            '['
        }
        '⁆' | '❳' | '⟧' | '〕' | '】' | '〗' | '〙' | '〛' | '⦌' | '⦎' | '⦐' | '⦘' | '⟭' | '⎤' | '⎦' => {
            ']'
        }
        '‵' | 'ˋ' => '`',
        _ => return None,
    })
}

/// Whether a look-alike is everyday writing somewhere: quotation marks and the brackets of Chinese, Japanese and
/// Korean. Folded all the same, and no signal.
pub(super) const fn is_everyday(c: char, plain: char) -> bool {
    plain == '"' || matches!(c, '‹' | '›' | '\u{3008}'..='\u{301b}')
}

/// What a letter of a script that this text does not use looks like: `ᐸ`, `ᐳ` and `ᚲ` beside no letter of
/// their own script are brackets in disguise; in Inuktitut or in runes they are letters, and stay.
pub(super) fn letter(before: Option<char>, c: char, after: Option<char>) -> Option<char> {
    let (sign, script) = match c {
        'ᐸ' => ('<', '\u{1400}'..='\u{167f}'),
        'ᐳ' => ('>', '\u{1400}'..='\u{167f}'),
        'ᚲ' => ('<', '\u{16a0}'..='\u{16ff}'),
        _ => return None,
    };
    let own = |neighbour: char| {
        script.contains(&neighbour) && neighbour.general_category_group() == GeneralCategoryGroup::Letter
    };
    (!before.is_some_and(own) && !after.is_some_and(own)).then_some(sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization;

    #[test]
    fn the_table_in_the_documentation_is_this_one() {
        let document = include_str!("../../../docs/judge.md");
        for (plain, shown) in [
            ('<', "`<`"),
            ('>', "`>`"),
            ('&', "`&`"),
            ('"', "`\"`"),
            ('{', "`{`"),
            ('}', "`}`"),
            ('[', "`[`"),
            (']', "`]`"),
            ('`', "backtick"),
        ] {
            let from: Vec<String> =
                ('\0'..=char::MAX).filter(|&c| sign(c) == Some(plain)).map(String::from).collect();
            let row = format!("| {shown} | {} |\n", from.join(" "));
            assert!(document.contains(&row), "docs/judge.md lacks {row}");
        }
    }

    #[test]
    fn every_look_alike_is_one_that_normalising_leaves() {
        let reached = |c: &char| c.to_string().nfkc().eq([*c]);
        let unreached: Vec<char> = ('\0'..=char::MAX).filter(|c| sign(*c).is_some() && !reached(c)).collect();
        assert_eq!(unreached, [] as [char; 0]);
    }
}
