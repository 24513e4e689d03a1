from toolwise import Effect, tool

EXAMPLES = [
    "He lent 700 crowns at 5% for 2 years and got [Interest(principal=700, rate=5, years=2)] 70 crowns of interest.",
    "On 3000 euros at 4% a year, after 6 years, it comes to [Interest(principal=3000, rate=4, years=6)] 720 euros.",
    "For 4 years she left 250 euros in the bank at 2%. It paid [Interest(principal=250, rate=2, years=4)] 20 euros.",
]


@tool(effect=Effect.PURE, bounded=True, examples=EXAMPLES)
def Interest(principal: float, rate: float, years: float) -> str:
    """Simple interest on a loan, at a rate in per cent a year."""
    return f"{principal * rate / 100 * years:.10g}"  # as a text writes it: 80, not 80.0
