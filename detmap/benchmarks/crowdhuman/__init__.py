"""Crowdhuman."""
