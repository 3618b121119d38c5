"""Laws with complementary pairs, kinks and smooth functions: branches along the field."""
