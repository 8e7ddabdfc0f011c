"""Statistics that several measures share: intervals, survival curves, diagnostics, scaling with n."""
