"""Pure rules: what makes an object wrong, as a list of violations. Knows the model and nothing else."""
