"""Prefect flows around ``pipeline``: every task calls one function of it."""
