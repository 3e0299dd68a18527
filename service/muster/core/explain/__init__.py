"""Why a unit is not scheduled, per group and domain with numbers, and what would help. Pure, as all of the core."""
