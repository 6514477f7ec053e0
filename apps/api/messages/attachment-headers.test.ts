import type { Attachment } from '#libs/mail/message.js'
import { attachmentHeaders } from './attachment-headers.js'

const attachment: Attachment = {
  index: 0,
  filename: 'a.pdf',
  contentType: 'application/pdf',
  size: 1,
  contentId: null,
  isInline: false,
  sha256: '',
}

describe('the headers of an attachment', () => {
  test.each([
    { filename: 'a.pdf', disposition: 'attachment; filename=a.pdf' },
    { filename: '../../etc/passwd', disposition: 'attachment; filename=passwd' },
    { filename: 'a\r\nX-Evil: 1', disposition: 'attachment; filename="aX-Evil: 1"' },
    { filename: null, disposition: 'attachment; filename=attachment' },
    { filename: '..', disposition: 'attachment; filename=attachment' },
    { filename: `${'a'.repeat(199)}😀`, disposition: `attachment; filename=${'a'.repeat(199)}` },
  ])('name $filename as $disposition', ({ filename, disposition }) => {
    expect(attachmentHeaders({ ...attachment, filename })['content-disposition']).toBe(disposition)
  })

  test.each([
    { contentType: 'application/pdf', served: 'application/pdf' },
    { contentType: 'text/html', served: 'application/octet-stream' },
    { contentType: 'image/svg+xml', served: 'application/octet-stream' },
    { contentType: 'text/plain; charset=x\r\nX-Evil: 1', served: 'application/octet-stream' },
  ])('serve $contentType as $served', ({ contentType, served }) => {
    expect(attachmentHeaders({ ...attachment, contentType })['content-type']).toBe(served)
  })
})
