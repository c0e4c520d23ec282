//! A permission is a value that only a decision makes: what would forge one does not compile.

#[test]
fn nobody_else_makes_a_permit() {
    trybuild::TestCases::new().compile_fail("tests/permits/*.rs");
}
