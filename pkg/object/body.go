package object

import (
	"bytes"
	"encoding/json"
)

// bodyStart begins every body, so that a precondition can be put into it without decoding it.
const bodyStart = `{"metadata":{`

// EncodeBody returns an object as JSON that begins with its metadata and has its other fields in alphabetical order: equal
// objects have equal bodies. The object must have metadata that is not empty. The error is that of the encoder.
func EncodeBody(obj map[string]any) ([]byte, error) {
	rest := make(map[string]any, len(obj))
	for field, value := range obj {
		if field != "metadata" {
			rest[field] = value
		}
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	body.WriteString(`{"metadata":`)
	if err := encoder.Encode(obj["metadata"]); err != nil {
		return nil, err
	}
	body.Truncate(body.Len() - 1) // the newline of the encoder
	if len(rest) > 0 {
		body.WriteByte(',')
		brace := body.Len()
		if err := encoder.Encode(rest); err != nil {
			return nil, err
		}
		encoded := body.Bytes()
		copy(encoded[brace:], encoded[brace+1:])
		body.Truncate(body.Len() - 2)
		return body.Bytes(), nil
	}
	body.WriteByte('}')
	return body.Bytes(), nil
}

// Require returns a body with a field of metadata that the API server compares with the live object's, such as its UID.
func Require(body []byte, field, value string) []byte {
	quoted, _ := json.Marshal(value) // a text can always be written
	required := make([]byte, 0, len(body)+len(field)+len(quoted)+4)
	required = append(required, bodyStart...)
	required = append(required, '"')
	required = append(required, field...)
	required = append(required, '"', ':')
	required = append(required, quoted...)
	required = append(required, ',')
	return append(required, body[len(bodyStart):]...)
}
