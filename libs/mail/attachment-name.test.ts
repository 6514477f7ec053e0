import { attachmentName } from './attachment-name.js'

test.each([
  ['text/calendar', 'invitation.ics'],
  ['application/ics', 'invitation.ics'],
  ['message/rfc822', 'message.eml'],
  ['message/global', 'message.eml'],
  ['message/delivery-status', 'attachment.txt'],
  ['image/png', 'attachment.png'],
  ['image/jpeg', 'attachment.jpg'],
  ['image/svg+xml', 'attachment.svg'],
  ['image/x-ms-bmp', 'attachment'],
  ['text/plain', 'attachment.txt'],
  ['text/html', 'attachment.html'],
  ['text/csv', 'attachment.csv'],
  ['text/x-vcard', 'attachment.vcf'],
  ['application/pdf', 'attachment.pdf'],
  ['application/x-zip-compressed', 'attachment.zip'],
  ['application/x-pkcs7-signature', 'attachment.p7s'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'attachment.xlsx'],
  ['audio/x-wav', 'attachment.wav'],
  ['video/mp4', 'attachment.mp4'],
  ['application/octet-stream', 'attachment'],
  ['application/exe', 'attachment'],
  ['image/../../x', 'attachment'],
  ['multipart/mixed', 'attachment'],
])('an attachment of type %s without a name is %s', (type, name) => {
  expect(attachmentName(null, type)).toBe(name)
  expect(attachmentName('a.bin', type)).toBe('a.bin')
})
