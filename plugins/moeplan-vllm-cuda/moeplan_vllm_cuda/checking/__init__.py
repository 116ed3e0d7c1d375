"""Whether a plan can run on a site: the arguments that will run, the workload, the recipe, the nodes."""
