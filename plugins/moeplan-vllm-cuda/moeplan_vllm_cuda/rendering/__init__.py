"""What the plugin renders: Deployments, LeaderWorkerSets, pairs, and the same as scripts."""
