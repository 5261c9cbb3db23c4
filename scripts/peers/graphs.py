"""The graphs of the comparison as functions from the number of a task to its producers, as the generators of ptosim make
them."""

WIDTH, STEPS, REACH, FANIN = 256, 16, 256, 3
MASK = (1 << 64) - 1


def chain(number):
    return [number - 1] if number > 0 else []


def stencil(number):
    if number < WIDTH:
        return []
    before, point = number - WIDTH, number % WIDTH
    return list(range(before - (point > 0), before + (point + 1 < WIDTH) + 1))


def bgemm(number):
    """Even tasks multiply and wait for nothing; odd ones add the product into a tile of C after the addition before."""
    if number % 2 == 0:
        return []
    return [number - 1, number - 2] if number // 2 % STEPS > 0 else [number - 1]


def mix(value):
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def random(number):
    reach = min(REACH, number)
    if reach <= FANIN:
        return list(range(number - reach, number))
    state, found = mix(1 ^ mix(number)), []
    for _ in range(FANIN):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        producer = number - 1 - (mix(state) * reach >> 64)
        if producer not in found:
            found.append(producer)
    return found


SHAPES = {"chain": chain, "stencil": stencil, "bgemm": bgemm, "random": random}


def on_cube(shape, number):
    """Whether a task runs on CUBE for 100 cycles, or on VECTOR for 50."""
    return shape != "stencil" and number % 2 == 0
