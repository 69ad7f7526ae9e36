package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// fileServer serves archives over HTTP, on this machine only.
type fileServer struct {
	server *http.Server
	url    string
	ended  chan error

	mu    sync.Mutex
	files map[string][]byte
}

func serveFiles() (*fileServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve the charts: %w", err)
	}
	s := &fileServer{url: "http://" + listener.Addr().String(), ended: make(chan error, 1), files: map[string][]byte{}}
	s.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(s.answer)}
	go func() { s.ended <- s.server.Serve(listener) }()
	return s, nil
}

func (s *fileServer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	content, ok := s.files[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// put has a file served, and returns its address.
func (s *fileServer) put(path string, content []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = content
	return s.url + path
}

func (s *fileServer) close() error {
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
