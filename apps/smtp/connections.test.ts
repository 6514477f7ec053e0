import { until } from '#test/harness/until.js'
import { Dialogue } from '#test/smtp/dialogue.js'
import { SmtpFixture } from '#test/smtp/smtp-fixture.js'

let fixture: SmtpFixture
let drip: NodeJS.Timeout | undefined

afterEach(async () => {
  clearInterval(drip)
  await SmtpFixture.closeAll()
})

describe('SMTP connections', () => {
  it('are limited for each address and in total', async () => {
    fixture = await SmtpFixture.started({ smtpMaxConnections: 2, smtpMaxConnectionsPerAddress: 1 })
    const kept = await Dialogue.open(fixture.port)
    expect(await kept.reply()).toMatch(/^220/)
    expect(await (await Dialogue.open(fixture.port)).rest()).toMatch(/^421 4\.7\.0 /)
    const other = await Dialogue.open(fixture.port, '127.0.0.2')
    expect(await other.reply()).toMatch(/^220/)
    expect(await (await Dialogue.open(fixture.port, '127.0.0.3')).rest()).toMatch(/^421 4\.7\.0 /)
    kept.close()
    await until('a greeting', async () =>
      (await (await Dialogue.open(fixture.port)).reply()).startsWith('220'),
    )
  })

  it('are closed if a command takes too long, even if its bytes trickle in', async () => {
    fixture = await SmtpFixture.started({ smtpCommandTimeoutMs: 1_000 })
    const silent = await Dialogue.open(fixture.port)
    const trickling = await Dialogue.open(fixture.port)
    await trickling.reply()
    drip = setInterval(() => trickling.send('x'), 50)
    expect(await silent.rest()).toMatch(/421 /)
    expect(await trickling.rest()).toMatch(/^421 4\.4\.2 /)
  })

  it('are closed if a mail takes too long', async () => {
    fixture = await SmtpFixture.started({ smtpDataTimeoutMs: 1_000 })
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    await client.address(address)
    expect(await client.ask('DATA')).toMatch(/^354/)
    drip = setInterval(() => client.send('x'), 50)
    expect(await client.rest()).toMatch(/^421 4\.4\.2 /)
    expect(await fixture.received()).toEqual([])
  })

  it('may send a mail byte by byte', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const client = await Dialogue.open(fixture.port)
    client.socket.setNoDelay(true)
    await client.address(address)
    await client.ask('DATA')
    for (const byte of Buffer.from('..a\r\nb\r\n.\r\n')) {
      client.send(Buffer.of(byte))
      await new Promise(setImmediate)
    }
    expect(await client.reply()).toMatch(/^250 /)
    expect((await fixture.received())[0]?.raw.toString()).toBe('.a\r\nb\r\n')
  })

  it('that end in DATA leave no mail', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    for (const end of [(client: Dialogue) => client.close(), (client: Dialogue) => client.socket.end()]) {
      const client = await Dialogue.open(fixture.port)
      await client.address(address)
      await client.ask('DATA')
      client.send('Subject: x\r\n\r\nhalf a mail\r\n')
      end(client)
      await fixture.untilConnectionsAre(0)
    }
    expect(await fixture.received()).toEqual([])
    const broken = fixture.logLines.filter(({ reason }) => reason === 'disconnected')
    expect(broken).toHaveLength(2)
  })

  it('finish their mail when the edge drains, while idle ones are closed', async () => {
    fixture = await SmtpFixture.started()
    const { address } = await fixture.createInbox()
    const [idle, busy] = [await Dialogue.open(fixture.port), await Dialogue.open(fixture.port)]
    await idle.address(address)
    await busy.address(address)
    await busy.ask('DATA')
    busy.send('Subject: x\r\n')
    await fixture.untilConnectionsAre(2)
    let isDrained = false
    const drained = fixture.drain().then(() => (isDrained = true))
    expect(await idle.rest()).toMatch(/^421 4\.3\.2 /)
    idle.socket.end()
    await expect(Dialogue.open(fixture.port)).rejects.toThrow(/ECONNREFUSED/)
    expect(isDrained).toBe(false)
    busy.send('\r\nbody\r\n.\r\n')
    expect(await busy.reply()).toMatch(/^250 2\.0\.0 msg_/)
    expect(await busy.rest()).toMatch(/^421 4\.3\.2 /)
    busy.socket.end()
    await drained
    expect(await fixture.received()).toHaveLength(1)
  })

  it('that stay half open do not delay the drain', async () => {
    fixture = await SmtpFixture.started()
    const client = await Dialogue.open(fixture.port)
    await client.reply()
    await fixture.drain()
    client.close()
  }, 10_000)
})
