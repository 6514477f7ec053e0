import { SharedRun } from './shared-run.js'

/** A lookup whose answers the test gives, and how many were asked for. */
function makeLookup() {
  const asked: PromiseWithResolvers<string>[] = []
  let onAsked = Promise.withResolvers<undefined>()
  const lookup = new SharedRun(() => {
    const answer = Promise.withResolvers<string>()
    asked.push(answer)
    onAsked.resolve(undefined)
    onAsked = Promise.withResolvers()
    return answer.promise
  }, 5)
  return { lookup, asked, nextAsked: () => onAsked.promise }
}

describe('a shared run', () => {
  it('asks once for all who call before it is asked', async () => {
    const { lookup, asked, nextAsked } = makeLookup()
    const answers = Promise.all([lookup.get(), lookup.get(), lookup.get()])
    await nextAsked()
    asked[0]?.resolve('one')
    expect(await answers).toEqual(['one', 'one', 'one'])
    expect(asked).toHaveLength(1)
  })

  it('gives nobody an answer that was asked for before the call', async () => {
    const { lookup, asked, nextAsked } = makeLookup()
    const early = lookup.get()
    await nextAsked()
    const late = [lookup.get(), lookup.get()]
    const askedAgain = nextAsked()
    asked[0]?.resolve('old')
    expect(await early).toBe('old')
    await askedAgain
    asked[1]?.resolve('new')
    expect(await Promise.all(late)).toEqual(['new', 'new'])
    expect(asked).toHaveLength(2)
  })

  it('asks again after a failure', async () => {
    const { lookup, asked, nextAsked } = makeLookup()
    const failed = lookup.get()
    await nextAsked()
    asked[0]?.reject(new Error('away'))
    await expect(failed).rejects.toThrow('away')
    const again = lookup.get()
    await nextAsked()
    asked[1]?.resolve('back')
    expect(await again).toBe('back')
  })

  it('begins its runs so far apart, however often it is asked', async () => {
    const begunAt: number[] = []
    const run = new SharedRun(() => {
      begunAt.push(performance.now())
      return Promise.resolve()
    }, 30)
    for (let times = 0; times < 4; times += 1) await run.get()
    const pauses = begunAt.slice(1).map((at, index) => at - (begunAt[index] ?? 0))
    for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(30)
  })

  it('is idle once nothing is under way or waited for', async () => {
    const { lookup, asked, nextAsked } = makeLookup()
    const first = lookup.get()
    await nextAsked()
    const second = lookup.get()
    let isIdle = false
    const idle = lookup.idle().then(() => (isIdle = true))
    const askedAgain = nextAsked()
    asked[0]?.resolve('one')
    await first
    await askedAgain
    expect(isIdle).toBe(false)
    asked[1]?.resolve('two')
    await Promise.all([second, idle])
    expect(isIdle).toBe(true)
  })
})
