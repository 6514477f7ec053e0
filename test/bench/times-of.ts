/** Milliseconds of each of so many rounds, behind one more that meets what has not been read before. */
export async function timesOf(rounds: number, ask: () => Promise<unknown>): Promise<number[]> {
  await ask()
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const asked = performance.now()
    await ask()
    times.push(performance.now() - asked)
  }
  return times
}
