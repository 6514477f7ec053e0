import { describeSignals } from './signals.contract.js'
import { InProcessSignals } from './signals.js'

describeSignals('one process', () => {
  const signals = new InProcessSignals()
  return Promise.resolve({ one: signals, other: signals, close: () => signals.close() })
})

describe('signals in one process', () => {
  it('reach no listener once closed', async () => {
    const signals = new InProcessSignals()
    const heard: string[] = []
    await signals.subscribe('moved', () => heard.push('moved'))
    signals.publish('moved')
    await signals.close()
    signals.publish('moved')
    await new Promise(setImmediate)
    expect(heard).toEqual([])
  })
})
