import { mintId } from './mint.js'
import { idFromBytes, isId } from './typeid.js'

describe('TypeID', () => {
  test.each([
    { text: 'inb_01h455vb4pex5vsknk084sn02q', is: true },
    { text: 'inb_01H455VB4PEX5VSKNK084SN02Q', is: false },
    { text: 'msg_01h455vb4pex5vsknk084sn02q', is: false },
    { text: 'inb_81h455vb4pex5vsknk084sn02q', is: false },
    { text: 'inb_01h455vb4pex5vsknk084sn02', is: false },
    { text: 'inb_01h455vb4pex5vsknk084sn0li', is: false },
    { text: '', is: false },
  ])('$text is an inbox id: $is', ({ text, is }) => {
    expect(isId('inb', text)).toBe(is)
  })

  it('is the same for the same bytes', () => {
    const bytes = Buffer.alloc(16, 7)
    expect(idFromBytes('acc', bytes)).toBe(idFromBytes('acc', bytes))
    expect(isId('acc', idFromBytes('acc', bytes))).toBe(true)
  })

  it('sorts by the time of its creation', () => {
    const ids = Array.from({ length: 1000 }, () => mintId('evt'))
    expect(new Set(ids).size).toBe(1000)
    expect([...ids].sort()).toEqual(ids)
  })
})
