"""The measurements behind README's figures: the product and a bare Django view, side by side in one run."""
