//! The report for people, as it is printed.

use crate::craft::*;

#[test]
fn a_report_reads_from_what_counts_to_what_was_read() {
    let elf = b"\x7fELF";
    let report = scan(&[
        &[file("bin/su", 0o4755).data(elf), hardlink("usr/bin/su", "bin/su", 0o4755)],
        &[file("bin/.wh.su", 0o644).data(b""), file("bin/nc.traditional", 0o755).data(elf)],
    ]);
    let text = report.to_human();
    let (_, text) = text.split_once('\n').expect("the source, which is a temporary file");
    insta::assert_snapshot!(text, @r"
    HIGH    setuid  bin/su
            view      hidden
            layer     1 of 2  sha256:0a0a9ffb8caf
            made by   RUN step 0
            because   the file's mode is 4755 [metadata]
            because   a later entry covers it; the layer's blob still holds it
                      [metadata]
            cis       4.8
            remedy    put `chmod u-s /bin/su` into the RUN that brings it, or build
                      in an earlier stage and COPY only what is needed: a later
                      layer takes nothing out of an earlier one's blob

    HIGH    setuid  usr/bin/su
            view      merged
            layer     1 of 2  sha256:0a0a9ffb8caf
            made by   RUN step 0
            because   the file's mode is 4755 [metadata]
            cis       4.8
            remedy    RUN chmod u-s /usr/bin/su   # in the RUN that brings it, or it
                      stays in that layer's blob

    Under the threshold, or allowed:
      medium  forbidden-binary (network-client)  bin/nc.traditional  merged
      medium  forbidden-binary (privilege-tool)  bin/su  hidden
      medium  forbidden-binary (privilege-tool)  usr/bin/su  merged

    Read     2 layers, 4 entries, 5120 bytes, 0 not analysed
    Found    2 high, 3 medium
    Verdict  refused: 2 findings at or over the threshold
    ");
}

#[test]
fn what_was_not_read_is_said_before_the_verdict() {
    let report = scan_raw(&[file("bin/true", 0o755).bytes()]);
    let text = report.to_human();
    let (_, text) = text.split_once('\n').expect("the source, which is a temporary file");
    insta::assert_snapshot!(text, @r"
    Not read, so that nothing can be promised:
      0/layer.tar: the tar has no end marker: it may have been cut off

    Read     1 layer, 1 entry, 1024 bytes, 0 not analysed
    Found    nothing
    Verdict  could not tell: not everything was read
    ");
}
