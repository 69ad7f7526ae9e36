package zone

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Server is a zone that keeps its records in memory. The zero value has none. It is safe for concurrent use.
type Server struct {
	mu      sync.Mutex
	records map[string]string
}

// NewServer returns a zone that has records already, addresses by host.
func NewServer(records map[string]string) *Server { return &Server{records: maps.Clone(records)} }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host := strings.TrimPrefix(r.URL.Path, "/records/")
	switch r.Method {
	case http.MethodPut:
		var put Record
		if err := json.NewDecoder(r.Body).Decode(&put); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if s.records == nil {
			s.records = map[string]string{}
		}
		s.records[host] = put.Address
	case http.MethodDelete:
		delete(s.records, host)
	default:
		address, ok := s.records[host]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(Record{host, address})
	}
}

// Records are all records, in the order of their hosts.
func (s *Server) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Record
	for _, host := range slices.Sorted(maps.Keys(s.records)) {
		all = append(all, Record{host, s.records[host]})
	}
	return all
}
