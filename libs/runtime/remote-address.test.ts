import { addressGroup, Networks, plainAddress } from './remote-address.js'

describe('a remote address', () => {
  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002:0000:0000:0000:0006', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['2001:db8:1:2::192.0.2.1', '2001:db8:1:2::/64'],
  ])('%s counts as %s', (address, group) => {
    expect(addressGroup(address)).toBe(group)
  })

  it('of IPv4 is the same on a dual-stack socket', () => {
    expect(plainAddress('::ffff:192.0.2.1')).toBe('192.0.2.1')
    expect(plainAddress(undefined)).toBe('')
  })

  it('is found in the networks that contain it', () => {
    const networks = new Networks(['192.0.2.7', '10.0.0.0/8', 'fd00::/8'])
    for (const address of ['192.0.2.7', '10.255.0.1', 'fd12::1']) expect(networks.has(address)).toBe(true)
    for (const address of ['192.0.2.8', '11.0.0.1', 'fe80::1', '']) expect(networks.has(address)).toBe(false)
  })
})
