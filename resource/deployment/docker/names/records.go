package names

import (
	"encoding/json"
	"net/netip"
	"os"
	"sync"
)

// File is where the records are in the container.
const File = "/operatorkit-names.json"

// Records are the addresses of the containers that work, by the names of services.
type Records map[string][]netip.Addr

// Encode returns what is in the file.
func (r Records) Encode() ([]byte, error) { return json.Marshal(r) }

// Decode returns what is in a file, or nil for what is no such file.
func Decode(text []byte) Records {
	var records Records
	if json.Unmarshal(text, &records) != nil {
		return nil
	}
	return records
}

// file reads records.
type file struct {
	path string

	mu   sync.Mutex
	last Records
}

// read returns what is in the file, or was when it could be read last.
func (f *file) read() Records {
	f.mu.Lock()
	defer f.mu.Unlock()
	// While an engine writes it, it is not there, or not complete.
	if text, err := os.ReadFile(f.path); err == nil {
		if records := Decode(text); records != nil {
			f.last = records
		}
	}
	return f.last
}
