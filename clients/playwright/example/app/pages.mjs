export function signupPage(error = '') {
  return page(`
    <h1>Create your account</h1>
    <p role="alert">${escapeHtml(error)}</p>
    <form method="post" action="/signup">
      <label>Email <input name="email" type="email" required></label>
      <button>Sign up</button>
    </form>`)
}

export function codePage(email, error = '') {
  return page(`
    <h1>Check your mail</h1>
    <p>We sent a code to ${escapeHtml(email)}.</p>
    <p role="alert">${escapeHtml(error)}</p>
    <form method="post" action="/code">
      <input name="email" type="hidden" value="${escapeHtml(email)}">
      <label>Code <input name="code" inputmode="numeric" required></label>
      <button>Confirm</button>
    </form>`)
}

export function welcomePage(email) {
  return page(`<h1>Welcome, ${escapeHtml(email)}</h1>`)
}

function page(body) {
  return `<!doctype html><html lang="en"><title>Example</title><body style="font-family: sans-serif">${body}</body></html>`
}

export function escapeHtml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
