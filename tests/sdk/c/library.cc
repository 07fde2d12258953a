// SPDX-License-Identifier: Apache-2.0
// millibox.h in C++: handles in smart pointers, a lambda as a callback.
#include <millibox.h>

#include <iostream>
#include <memory>
#include <string>

template <auto function> struct Free {
	template <typename T> void operator()(T *handle) const { function(handle); }
};
using Client = std::unique_ptr<millibox_client, Free<millibox_client_free>>;
using Request = std::unique_ptr<millibox_request, Free<millibox_request_free>>;
using Result = std::unique_ptr<millibox_result, Free<millibox_result_free>>;
using Session = std::unique_ptr<millibox_session, Free<millibox_session_free>>;

int main()
{
	Client client{millibox_client_new()};
	millibox_session *raw_session = nullptr;
	if (millibox_session_create(client.get(), nullptr, &raw_session) < 0) {
		std::cerr << millibox_error_message(client.get()) << "\n";
		return 1;
	}
	Session session{raw_session};
	Request request{millibox_request_new("print('from the box')\n6 * 7")};
	std::string seen;
	auto take = [](void *ctx, millibox_stream, const char *data, size_t len) -> int {
		static_cast<std::string *>(ctx)->append(data, len);
		return 0;
	};
	millibox_request_on_output(request.get(), take, &seen);
	millibox_result *raw_result = nullptr;
	if (millibox_session_run(session.get(), request.get(), &raw_result) < 0)
		return 1;
	Result result{raw_result};
	std::cout << seen << millibox_result_text(result.get()) << "\n";
	return millibox_session_delete(session.get()) == 0 ? 0 : 1;
}
