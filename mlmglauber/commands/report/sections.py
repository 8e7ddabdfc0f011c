"""The sections of a page: what each shows, how to read it, and the command lines that make it again."""

from typing import NamedTuple


class Subject(NamedTuple):
    """One section.

    about: sentences on what is shown, its units and how to read it. commands: the commands whose runs belong here.
    of: what its summaries are of. pictures: its kinds of pictures, each with the type of the records that it draws.
    again: the command that makes the summaries of its tables and the type of the records that it reads, "" for none.
    """

    name: str
    title: str
    about: str
    commands: tuple[str, ...]
    of: tuple[str, ...] = ()
    pictures: tuple[tuple[str, str], ...] = ()
    again: tuple[str, str] = ("", "")


SUBJECTS = (
    Subject("texts", "Texts as the model cuts them",
            "A site of a chain is one token of the model. The tables show how the texts are cut into tokens, and which "
            "tokens the model does not know.",
            ("mlm-tokens",)),
    Subject("chains", "Chains",
            "A step of a chain picks a site of the text, masks it and draws its token anew from the model, at "
            "temperature tau; n steps are a sweep of a text of n tokens. The table counts the states that are in the "
            "records. Below it, some chains are shown from their first text to their last.",
            ("mlm-sample",), pictures=(("plane", "state"),)),
    Subject("drift", "Drift",
            "Drift is 1 - cosine between the embeddings of a chain's first text and its present one: 0 is the same "
            "text, 0.5 a related one, 1 an unrelated one. The hitting time is the number of steps until the drift "
            "first reaches a threshold; n ln n steps draw nearly every site once. R-hat compares the chains of a row: "
            "near 1 they have forgotten their starts.",
            ("mlm-embed",), ("state",), (("drift", "state"), ("times", "state")),
            ("mlm-drift --summary", "embedded")),
    Subject("basins", "Regions of meaning",
            "Each text lies in a region of embedding space, such as a topic. The tables show how many chains came to "
            "each region, came back and ended there, and how long they stayed; the share that independent texts have "
            "is beside it.",
            ("mlm-basins",), ("basin",), (("basins", "basin"),)),
    Subject("coupling", "Coupled chains",
            "Two chains choose the same sites and couple their tokens. The step at which they agree everywhere is "
            "their meeting time: pairs that meet soon show that the chain mixes fast. Times are in joint steps; a "
            "pair that has not met in its time is censored, and a dash is a median that was not reached.",
            ("mlm-couple",), ("pair",), (("phase", "pair"), ("times", "pair"), ("lag", "pair")),
            ("mlm-couple --summary", "pair")),
    Subject("rectangles", "Do the conditionals fit a joint distribution?",
            "Two tokens of a text are changed, in either order. Delta is the difference, in nats, of the two changes "
            "of log-probability: it is 0 everywhere, up to rounding (the noise floor), exactly if the conditionals are "
            "those of a joint distribution. Entropy production asks the same of a chain: it is 0 if the chain is "
            "reversible.",
            ("mlm-rect",), ("rectangle", "path"), (("rectangles", "rectangle"),),
            ("mlm-rect --summary", "rectangle")),
    Subject("influence", "Influences",
            "The influence of a site on another is how far its token moves the conditional there, in total variation. "
            "Alpha is the largest sum of influences on a site; below 1 the chain would mix fast. Sampled influences "
            "are lower estimates: they can show that alpha is 1 or more, never that it is less.",
            ("mlm-influence",), ("influence",), (("influence", "influence"),)),
    Subject("traps", "Traps",
            "A trap is a part of a chain that stays within a few changed sites of one text. Its residence is its "
            "length in steps. The margin, in nats, is by how much the text's tokens are likelier than the next ones: "
            "the larger it is, the longer the chain stays. In a perfect trap each token is the likeliest at its site.",
            ("mlm-traps",), ("trap",), (("residence", "trap"), ("slowness", "trap"))),
    Subject("exact", "Small chains, solved exactly",
            "A model that is restricted to few words has a chain of few states, which can be solved without sampling. "
            "The mixing time t_mix is the number of steps after which the chain is within eps of its stationary law, "
            "in total variation.",
            ("mlm-exact",), (), (("exact", "exact"),)),
)

CAPTIONS = {
    "plane": "States in a plane of their embeddings. A point is a state; dark points are early, light ones late. Close "
             "points are texts of similar meaning.",
    "drift": "Drift against time. A line is the median over the chains of a temperature, its band the quartiles; the "
             "dotted line is the threshold.",
    "plateau": "Plateau of the drift against temperature: the mean over the second half of each chain's time, then "
               "over chains, with its standard deviation over chains.",
    "times": "Times against temperature: above in steps, below in units of n ln n. Marks are medians with 95 % "
             "intervals, for each length; small marks are single chains or pairs, with three rays where they are "
             "censored. A hollow triangle is a median that was not reached.",
    "phase": "Median meeting time in units of n ln n, for each temperature and length; hatched where over half of the "
             "pairs did not meet. Marks are crossovers: the temperatures at which the median passes a budget.",
    "lag": "Bound on the distance to the stationary law, in total variation, against the step, with 1.96 standard "
           "errors. A bound above 1 excludes nothing.",
    "rectangles": "Histogram of |delta| on a logarithmic axis, in nats. The upright line is the largest noise: what is "
                  "far to its right is not rounding.",
    "influence": "Influences between sites as a matrix, where it was recorded, and alpha against temperature. Below "
                 "the line at 1 the criterion would hold, but sampled influences prove nothing there.",
    "residence": "Share of traps that last longer than t steps, on logarithmic axes, for each temperature. The dashed "
                 "line is expected of stays in single states, by their exact escape probabilities; ticks are traps "
                 "that the end of the records cut off.",
    "slowness": "Mean steps until a trap is left against 1 / tau. A straight line is a barrier whose height is its "
                "slope in nats.",
    "basins": "Share of the chains of each start (row) that visited each region (column).",
    "exact": "Probabilities of the likeliest states of the first text, and its mixing time in steps beside the bound "
             "from influences, against temperature.",
}
