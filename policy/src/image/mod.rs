//! What one image may carry: rules, severities and the verdict of a scan.
