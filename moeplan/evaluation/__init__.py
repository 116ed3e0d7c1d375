"""Pure judgement: verified evidence, a plan, a policy and an instant give a verdict."""
