"""Reading logs for what is known of them: which lines bear a known signature, and what that means."""
