//! What may leave: names, addresses, egress profiles and the decision on one CONNECT.
