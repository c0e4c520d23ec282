//! Money decisions: culls, quotas, prices, tiers (E1 to E30).
