# SPDX-License-Identifier: Apache-2.0
"""Calls a cloud function in a box of its own. Usage: lambda_handler.py"""

import millibox

HANDLER = '''
import json

def handler(event, context):
    words = event["text"].split()
    print("called as", context.function_name)
    return {"words": len(words), "longest": max(words, key=len), "left": context.get_remaining_time_in_millis() > 0}
'''


def main():
    with millibox.Client() as client:
        print(client.call(HANDLER, {"text": "boxes run untrusted code"}, context={"function_name": "count"}, timeout=5))
        try:
            client.call(HANDLER, {"txt": "misspelt"})
        except millibox.ProgramFailed as e:
            print(e.result.error)


if __name__ == "__main__":
    main()
