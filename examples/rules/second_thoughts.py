"""Toy24: an undo is refused twice in a row, and every third answer hides what came of the move."""

import random


class _Rules(Rules):
    def filter_action(self, action, env_state):
        if action.name == "undo" and env_state.extras.get("undid"):
            return Blocked("You have just taken a move back. Make another one first.")
        env_state.extras["undid"] = action.name == "undo"
        return action

    def modify_transition(self, action, response, env_state):
        if action.name == "combine" and not response.terminated and random.random() < 1 / 3:
            return fake_response(f"Noted: {action_str(action)}.")
        return response
