// A small application with a signup: it sends a code and a link by mail, and either of them signs the user in.
import { randomBytes, randomInt } from 'node:crypto'
import { createServer } from 'node:http'
import { sendSignupMail } from './mailer.mjs'
import { codePage, signupPage, welcomePage } from './pages.mjs'

const port = Number(process.env.PORT ?? 3100)
const MAX_BODY_CHARACTERS = 10_000

/** Signups that wait for their code or link, by email address. */
const signups = new Map()

const routes = {
  'GET /': (_request, response) => sendPage(response, signupPage()),

  async 'POST /signup'(request, response) {
    const email = (await readForm(request)).get('email') ?? ''
    const code = String(randomInt(100_000, 1_000_000))
    const token = randomBytes(16).toString('hex')
    signups.set(email, { code, token })
    const link = `http://${request.headers.host}/verify?${new URLSearchParams({ email, token })}`
    await sendSignupMail({ to: email, code, link })
    sendPage(response, codePage(email))
  },

  async 'POST /code'(request, response) {
    const form = await readForm(request)
    const email = form.get('email') ?? ''
    if (form.get('code') === signups.get(email)?.code) signIn(response, email)
    else sendPage(response, codePage(email, 'Wrong code'))
  },

  'GET /verify'(request, response) {
    const { searchParams } = new URL(request.url, 'http://localhost')
    const email = searchParams.get('email') ?? ''
    if (searchParams.get('token') === signups.get(email)?.token) signIn(response, email)
    else sendPage(response, signupPage('This link is not valid'))
  },
}

createServer(async (request, response) => {
  const route = routes[`${request.method} ${request.url.split('?')[0]}`]
  try {
    if (route === undefined) response.writeHead(404).end('Not found')
    else await route(request, response)
  } catch (error) {
    console.error(error)
    response.writeHead(500).end('The mail could not be sent')
  }
}).listen(port, '127.0.0.1')

function signIn(response, email) {
  signups.delete(email)
  response.setHeader('Set-Cookie', `session=${randomBytes(16).toString('hex')}; Path=/; SameSite=Lax`)
  sendPage(response, welcomePage(email))
}

function sendPage(response, html) {
  response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(html)
}

async function readForm(request) {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) {
    body += chunk
    if (body.length > MAX_BODY_CHARACTERS) throw new Error('The form is too large')
  }
  return new URLSearchParams(body)
}
