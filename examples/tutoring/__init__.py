"""Tutoring: a student with misconceptions, their homework, and tutors that teach or tell."""

__all__ = ()
