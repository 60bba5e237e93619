"""Epilogues as graphs: what follows a product or stands alone, traced from Python, changed by passes, lowered."""
