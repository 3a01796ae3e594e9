package virtual

import "net/url"

// hostOf returns the host name of a URL, which is the name in the certificate of the server.
func hostOf(server string) string {
	parsed, err := url.Parse(server)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}
