// k6 run -e MAYFLY_KEY=… example.js
import { check } from 'k6'
import { createInbox, deleteInbox, injectMessage, waitForMessage } from './mayfly.js'

export const options = {
  vus: 3,
  iterations: 9,
  thresholds: {
    checks: ['rate==1'],
    // A mail that does not arrive is a failed request.
    http_req_failed: ['rate==0'],
    'http_req_duration{name:GET /v1/inboxes/{id}/messages/wait}': ['p(95)<5000'],
  },
}

export default function () {
  const inbox = createInbox({ duration: '30m', labels: { run: __ENV.RUN || 'k6' } })
  try {
    signUp(inbox)
    const message = waitForMessage(inbox, { subject: 'welcome', has_code: true, timeout: 20 })
    check(message, {
      'has the code': ({ codes }) => codes[0].value === '493201',
      'has the link': ({ links }) => links.some(({ href }) => href.startsWith('https://app.example/verify')),
    })
  } finally {
    deleteInbox(inbox)
  }
}

/** Stands for a request to your application, which sends the mail. */
function signUp(inbox) {
  injectMessage(inbox, {
    from: 'App <no-reply@app.example>',
    subject: 'Welcome',
    text: 'Your code is 493201: https://app.example/verify?t=1',
  })
}
