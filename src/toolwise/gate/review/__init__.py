"""Looking at a policy before it decides: what is wrong with it, what it says of a call, what another would change."""
