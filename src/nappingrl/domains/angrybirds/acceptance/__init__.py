"""The acceptance test of levels: do they tell a trained agent from a constant, a random and a scripted one?"""
